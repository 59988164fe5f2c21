import { createHash } from 'node:crypto';
import { codeOf, OnceperError } from '../kernel/error.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { clockContinued, clockFrom, holdsFrom, type Transition, type ZoneClock } from '../kernel/zone-clock.ts';
import { appendAudit } from './audit.ts';
import { serverOf } from './server.ts';

/** Until when PostgreSQL is asked about a zone's clock: schedules fire until 2100. */
const KNOWN_UNTIL = '2101-01-01T00:00:00Z';

/** A version of a job's table of its zone, without its changes. */
export interface ZoneTable {
  readonly version: number;
  readonly zone: string;
  readonly source: string;
  readonly digest: string;
}

/** What a look at PostgreSQL's table did to the ledger's: the first one, a newer one from an instant on, or nothing. */
export type Adoption =
  | { readonly kind: 'unchanged'; readonly clock: ZoneClock }
  | {
      readonly kind: 'adopted';
      readonly version: number;
      readonly clock: ZoneClock;
      readonly holdsFrom: Instant | null;
    };

/**
 * Makes PostgreSQL's facts about a zone those of a job, under the job's lock: whole where it has none, else from `decidedUntil` on,
 * so that what was decided by the earlier ones keeps its place; that is audited. Throws OnceperError `unknown_zone`.
 */
export async function adoptZoneTable(
  tx: Tx,
  of: {
    readonly job: string;
    readonly zone: string;
    readonly first: string;
    readonly decidedUntil: Instant | null;
    readonly actor: string;
  },
): Promise<Adoption> {
  const { job, zone, first, decidedUntil, actor } = of;
  const found = await clockOfServer(tx, zone, first);
  const latest = await latestZoneTable(tx, job);
  if (latest !== null && decidedUntil === null) return { kind: 'unchanged', clock: await clockOf(tx, job, latest) };
  const before = latest === null ? null : await clockOf(tx, job, latest);
  const from = before === null || decidedUntil === null ? null : holdsFrom(before, found.clock, decidedUntil);
  const changes = before === null || from === null ? found.changes : clockContinued(before, found.clock, from);
  const digest = digestOf(changes);
  if (before !== null && digest === latest?.digest) return { kind: 'unchanged', clock: before };
  const version = (latest?.version ?? 0) + 1;
  await insertZoneTable(tx, { job, version, zone, source: found.source, digest, changes, holdsFrom: from, actor });
  const detail = { version, zone, source: found.source, digest, holdsFrom: from };
  // The first table comes with the job's rule, whose entry names it.
  if (before !== null) await appendAudit(tx, { actor, verb: 'adopt-zone', job, key: null, run: null, detail });
  const clock = clockFrom({ zone, facts: factsOf({ source: found.source, digest }), transitions: changes });
  return { kind: 'adopted', version, clock, holdsFrom: from };
}

/** A zone's clock by the table that PostgreSQL has now, from two years before the year of `first` on. Throws `unknown_zone`. */
export async function clockOfServer(
  tx: Tx,
  zone: string,
  first: string,
): Promise<{ readonly clock: ZoneClock; readonly source: string; readonly changes: readonly Transition[] }> {
  const source = `PostgreSQL ${(await serverOf(tx))?.version ?? ''}`;
  const year = Number(/\d{4}/.exec(first)?.[0] ?? '1970') - 2;
  const changes = await changesOfServer(tx, zone, { source, since: `${year}-01-01T00:00:00Z` });
  const digest = digestOf(changes);
  return { source, changes, clock: clockFrom({ zone, facts: factsOf({ source, digest }), transitions: changes }) };
}

/** The clock of a job by a version of its table. One that was read once is kept. */
export async function clockOf(tx: Tx, job: string, table: ZoneTable): Promise<ZoneClock> {
  const { version, zone, digest } = table;
  const id = `${zone} ${factsOf(table)} ${digest}`;
  const known = clocksKnown.get(id);
  if (known !== undefined) return known;
  const clock = clockFrom({ zone, facts: factsOf(table), transitions: await changesOf(tx, job, version) });
  clocksKnown.set(id, clock);
  return clock;
}

/** A table never changes, and its digest says what is in it. */
const clocksKnown = new Map<string, ZoneClock>();

async function latestZoneTable(tx: Tx, job: string): Promise<ZoneTable | null> {
  const { rows } = await tx.query<ZoneTable>(
    `select version, zone, source, digest from onceper.zone_table where job = $1 order by version desc limit 1`,
    [job],
  );
  return rows[0] ?? null;
}

async function changesOf(tx: Tx, job: string, version: number): Promise<Transition[]> {
  const { rows } = await tx.query<{ at: bigint; offset: number }>(
    `select c.at, c.ahead as offset
       from onceper.zone_table z cross join lateral unnest(z.changes, z.aheads) as c (at, ahead)
      where z.job = $1 and z.version = $2 order by c.at`,
    [job, version],
  );
  return rows.map(({ at, offset }) => ({ at: Number(at), offset }));
}

async function insertZoneTable(
  tx: Tx,
  table: ZoneTable & {
    readonly job: string;
    readonly changes: readonly Transition[];
    readonly holdsFrom: Instant | null;
    readonly actor: string;
  },
): Promise<void> {
  const { job, version, zone, source, digest, changes, holdsFrom, actor } = table;
  const columns = [changes.map(({ at }) => at), changes.map(({ offset }) => offset)];
  await tx.query(
    `insert into onceper.zone_table (job, version, zone, source, digest, changes, aheads, holds_from, adopted_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [job, version, zone, source, digest, ...columns, holdsFrom, actor],
  );
}

/** PostgreSQL says `invalid_parameter_value` of a zone that it does not know. */
async function changesOfServer(
  tx: Tx,
  zone: string,
  of: { readonly source: string; readonly since: Instant },
): Promise<Transition[]> {
  try {
    const { rows } = await tx.query<{ at: bigint; offset: number }>(
      `select at, ahead as offset from onceper.zone_changes($1, $2, $3)`,
      [zone, of.since, KNOWN_UNTIL],
    );
    return rows.map(({ at, offset }) => ({ at: Number(at), offset }));
  } catch (error) {
    if (codeOf(error instanceof OnceperError ? error.cause : error) !== '22023') throw error;
    throw unknownZone(zone, of.source);
  }
}

function unknownZone(zone: string, source: string): OnceperError {
  return new OnceperError({
    code: 'unknown_zone',
    message: `${source} knows no time zone '${zone}'`,
    remedy: 'the database decides about zones: name one that it has (select name from pg_timezone_names)',
    at: zone,
  });
}

function digestOf(changes: readonly Transition[]): string {
  const text = changes.map(({ at, offset }) => `${at} ${offset}`).join('\n');
  return createHash('sha256').update(text).digest('hex');
}

/** What is stored beside a decision: enough of the digest to tell two tables of one server's version apart. */
function factsOf({ source, digest }: Pick<ZoneTable, 'source' | 'digest'>): string {
  return `${source}, zone table ${digest.slice(0, 12)}`;
}
