import { OnceperError } from '../kernel/error.ts';
import type { Tx } from '../kernel/sql.ts';
import type { ZoneClock } from '../kernel/zone-clock.ts';
import { appendAudit } from './audit.ts';
import { digestOf } from './audit-ledger.ts';
import { type Database, transaction } from './database.ts';
import { adoptZoneTable, clockOf, type ZoneTable } from './zone-tables.ts';

/**
 * A stored version of a job's parameters; `body` is the rule file's JSON as it was loaded, `clock` the ledger's table of the job's
 * zone, by which its periods are placed whatever the process that asks knows of zones.
 */
export interface StoredRule {
  readonly job: string;
  readonly version: number;
  readonly body: unknown;
  readonly clock: ZoneClock | null;
}

/** What loading a rule file did. A body that differs from the active version is never replaced by loading a file. */
export type RuleLoad =
  | { readonly kind: 'loaded'; readonly version: number }
  | { readonly kind: 'unchanged'; readonly version: number }
  | { readonly kind: 'differs'; readonly version: number };

/**
 * Stores a job's rule as version 1 where the job has none. Loading the same body again changes nothing; any number of
 * starters at once store it once, because the job's row decides.
 */
export async function loadFirstRule(
  db: Database,
  rule: { job: string; body: unknown; loadedBy: string },
): Promise<RuleLoad> {
  return transaction(db, { lockTimeout: 10_000 }, async (tx) => {
    await lockJob(tx, rule.job);
    const active = await activeRule(tx, rule.job);
    if (active !== null) {
      const same = await isSameBody(tx, rule.job, active.version, rule.body);
      return { kind: same ? 'unchanged' : 'differs', version: active.version };
    }
    await insertRule(tx, { ...rule, version: 1 });
    await insertJob(tx, rule.job, 1);
    const zone = { ...zoneOf(rule.body), job: rule.job, decidedUntil: null, actor: rule.loadedBy };
    const { clock } = await adoptZoneTable(tx, zone);
    const detail = { version: 1, body: digestOf(rule.body), zoneFacts: clock.facts };
    await appendAudit(tx, { actor: rule.loadedBy, verb: 'load-rule', job: rule.job, key: null, run: null, detail });
    return { kind: 'loaded', version: 1 };
  });
}

/** A rule, and the latest table of its job and zone: null in each column where a release before these tables stored it. */
type RuleRow = Omit<StoredRule, 'clock'> & { readonly zoneVersion: number | null } & Pick<
    ZoneTable,
    'zone' | 'source' | 'digest'
  >;

const ZONE_COLUMNS = `z.version as "zoneVersion", z.zone, z.source, z.digest`;
const LATEST_ZONE = `(select version, zone, source, digest from onceper.zone_table
                       where job = r.job and zone = r.body ->> 'zone' order by version desc limit 1) z`;

async function withClock(tx: Tx, { job, version, body, zoneVersion, ...table }: RuleRow): Promise<StoredRule> {
  const clock = zoneVersion === null ? null : await clockOf(tx, job, { ...table, version: zoneVersion });
  return { job, version, body, clock };
}

/** The active rule of a job, or null where none was loaded. */
export async function activeRule(tx: Tx, job: string): Promise<StoredRule | null> {
  const { rows } = await tx.query<RuleRow>(
    `select r.job, r.version, r.body, ${ZONE_COLUMNS}
       from onceper.job j
       join onceper.rule r on r.job = j.job and r.version = j.active_rule
       left join lateral ${LATEST_ZONE} on true
      where j.job = $1`,
    [job],
  );
  return rows[0] === undefined ? null : withClock(tx, rows[0]);
}

/** A pinned version; throws OnceperError `rule_missing`, because an action can't have been admitted under none. */
export async function ruleVersion(tx: Tx, job: string, version: number): Promise<StoredRule> {
  const { rows } = await tx.query<RuleRow>(
    `select r.job, r.version, r.body, ${ZONE_COLUMNS}
       from onceper.rule r
       left join lateral ${LATEST_ZONE} on true
      where r.job = $1 and r.version = $2`,
    [job, version],
  );
  if (rows[0] !== undefined) return withClock(tx, rows[0]);
  throw new OnceperError({
    code: 'rule_missing',
    message: `rule ${job} version ${version} is not stored`,
    remedy: 'restore the database from a backup that has it',
    at: job,
  });
}

/** The rule that a key is worked under: the version it is pinned to, or the active one while it has no action. */
export async function ruleOfKey(
  tx: Tx,
  key: { readonly job: string; readonly pinned: number | null },
): Promise<StoredRule | null> {
  return key.pinned === null ? activeRule(tx, key.job) : ruleVersion(tx, key.job, key.pinned);
}

/**
 * Takes the job's advisory lock until the transaction ends; the first in the lock order. Limits and predecessors are judged
 * under it: counted without it, 30 of 30 parallel opens passed a limit of 3.
 */
export async function lockJob(tx: Tx, job: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('onceper job ' || $1::text, 0))`, [job]);
}

/** Stores a one-off instant of a job's schedule, audited last in the caller's transaction; asked twice it is stored once. */
export async function storeOneOff(
  tx: Tx,
  oneOff: { job: string; at: string; reason: string; actor: string },
): Promise<void> {
  const { job, at, reason, actor } = oneOff;
  const { rowCount } = await tx.query(
    `insert into onceper.one_off (job, at, reason, actor) values ($1, $2, $3, $4) on conflict do nothing`,
    [job, at, reason, actor],
  );
  if (rowCount === 0) return;
  await appendAudit(tx, { actor, verb: 'one-off', job, key: null, run: null, detail: { at, reason } });
}

/** True when the instant was stored as a one-off of the job's schedule. */
export async function isOneOff(tx: Tx, job: string, at: string): Promise<boolean> {
  const { rowCount } = await tx.query(`select from onceper.one_off where job = $1 and at = $2`, [job, at]);
  return rowCount > 0;
}

async function isSameBody(tx: Tx, job: string, version: number, body: unknown): Promise<boolean> {
  const { rows } = await tx.query<{ same: boolean }>(
    `select body = $3::jsonb as same from onceper.rule where job = $1 and version = $2`,
    [job, version, JSON.stringify(body)],
  );
  return rows[0]?.same ?? false;
}

/** The zone of a rule file and its first period; both were checked before it is stored. */
function zoneOf(body: unknown): { zone: string; first: string } {
  const { zone, first } = body as { readonly zone: string; readonly first: string };
  return { zone, first };
}

async function insertRule(
  tx: Tx,
  rule: { job: string; version: number; body: unknown; loadedBy: string },
): Promise<void> {
  await tx.query(`insert into onceper.rule (job, version, body, loaded_by) values ($1, $2, $3, $4)`, [
    rule.job,
    rule.version,
    JSON.stringify(rule.body),
    rule.loadedBy,
  ]);
}

async function insertJob(tx: Tx, job: string, version: number): Promise<void> {
  await tx.query(`insert into onceper.job (job, active_rule) values ($1, $2)`, [job, version]);
}
