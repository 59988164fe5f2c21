import type { ExpectedPeriod, ExpectedState } from '../jobs/expectation.ts';
import { nominalTimeOf } from '../jobs/occasion.ts';
import type { Registry } from '../jobs/registry.ts';
import type { JobRule } from '../jobs/rule.ts';
import { type Database, transaction } from '../store/database.ts';
import { countOverdueEffects, effectsForAPerson } from '../store/effect-alarms.ts';
import type { MigrationStanding } from '../store/migrate.ts';
import { serverOf } from '../store/server.ts';
import { type Check, checked, fail, ok, warn } from './check.ts';
import { backfillCommand } from './commands.ts';
import { checkDestinations } from './doctor-destinations.ts';
import { checkHolds, checkInTransit, checkWebhooks } from './doctor-money.ts';
import { checkNotices } from './doctor-notices.ts';
import { periodList } from './period-list.ts';
import { expectedPeriods } from './periods.ts';
import { activeRuleOf } from './rule.ts';

/** The oldest version that the suite is run on. Before 17 a claim bounds its wait itself (store/blockers.ts). */
const LEAST_POSTGRES = 15;

/** The database itself. Its row is the one that says whether there is a server. */
export async function checkDatabase(db: Database): Promise<Check> {
  const server = await serverOf(db);
  const detail = `PostgreSQL ${server?.version ?? '?'}, database ${server?.database ?? '?'}`;
  if (server === null || server.major < LEAST_POSTGRES) {
    return fail('database', detail, `use PostgreSQL ${LEAST_POSTGRES} or later`);
  }
  if (server.isReplica) {
    return fail(
      'database',
      `${detail}, a replica`,
      'point DATABASE_URL at the primary: nothing is decided from a replica',
    );
  }
  return ok('database', detail);
}

/** Migrations that this release has and the database lacks, or the other way round. */
export function migrationCheck({ pending, unknown }: MigrationStanding): Check {
  if (unknown.length > 0) {
    const detail = `the database is newer than this build, which does not know ${unknown.join(', ')}`;
    return fail('migrations', detail, 'use the build that migrated it, or a later one');
  }
  if (pending.length === 0) return ok('migrations', 'all applied');
  return fail('migrations', `${pending.length} pending: ${pending.join(', ')}`, 'npx onceper migrate');
}

/** What the ledger says of each job: its rule, the balance of its books, its periods; then the effects of all. */
export async function checkLedger(db: Database, registry: Registry): Promise<Check[]> {
  const rows: Check[] = [];
  for (const job of registry.ids) {
    rows.push(...(await checked(`rule of ${job}`, () => checkRuleOf(db, registry, job))));
    if (rows.at(-1)?.state !== 'ok') continue;
    rows.push(...(await checked(`books of ${job}`, () => checkBooks(db, registry, job))));
    rows.push(...(await checked(`in transit of ${job}`, () => checkInTransit(db, registry, job))));
    rows.push(...(await checked(`holds of ${job}`, () => checkHolds(db, registry, job))));
    rows.push(...(await checked(`periods of ${job}`, () => checkPeriods(db, registry, job))));
  }
  rows.push(...(await checked('destinations', () => checkDestinations(db))));
  rows.push(...(await checked('effects', () => checkEffects(db))));
  rows.push(...(await checked('webhooks', () => checkWebhooks(db))));
  rows.push(...(await checked('delivery', () => checkDelivery(db))));
  rows.push(...(await checked('notices', () => checkNotices(db))));
  return rows;
}

async function checkRuleOf(db: Database, registry: Registry, job: string): Promise<Check> {
  const { rule, version } = await activeRuleOf(db, registry, job);
  return ok(`rule of ${job}`, `version ${version}, ${rule.period}s from ${rule.first}, zone ${rule.zone}`);
}

async function checkBooks(db: Database, registry: Registry, job: string): Promise<Check> {
  const gaps = await transaction(db, { label: 'doctor' }, (tx) => registry.get(job).ledgerGaps(tx));
  const open = Object.entries(gaps).filter(([, gap]) => gap !== 0n);
  if (open.length === 0) return ok(`books of ${job}`, `balanced (${Object.keys(gaps).join(', ') || 'nothing posted'})`);
  const detail = open.map(([currency, gap]) => `${currency} is off by ${gap} minor units`).join(', ');
  return fail(`books of ${job}`, detail, 'stop the relay, and look for a hand that changed rows of the job’s schema');
}

async function checkPeriods(db: Database, registry: Registry, job: string): Promise<Check[]> {
  const { rule, periods } = await expectedPeriods(db, registry, { job });
  const rows = ALARMS.flatMap(({ state, level, remedy }) => {
    const found = periods.filter((period) => period.state === state);
    const [first] = found;
    const last = found.at(-1);
    if (first === undefined || last === undefined) return [];
    const detail = `${found.length} ${state.replaceAll('_', ' ')}${named(found, periods)}`;
    return [level(`periods of ${job}`, detail, remedy({ job, rule, first, last }))];
  });
  return rows.length > 0 ? rows : [ok(`periods of ${job}`, `${periods.length} expected, none needs anybody`)];
}

function named(found: readonly ExpectedPeriod[], among: readonly ExpectedPeriod[]): string {
  const names = (periods: readonly ExpectedPeriod[]) => periods.map(({ period }) => period);
  const text = periodList(names(found), names(among));
  return text.startsWith('between') ? ` ${text}` : `: ${text}`;
}

interface Found {
  readonly job: string;
  readonly rule: JobRule;
  readonly first: ExpectedPeriod;
  readonly last: ExpectedPeriod;
}

function missed({ job, rule, first, last }: Found): string {
  return backfillCommand(job, nominalTimeOf(rule, first.period), nominalTimeOf(rule, last.period));
}

const why = ({ job, first }: Found) => `npx onceper why ${job}:${first.period}`;

/** The states of a period that deserve a row, worst first. */
const ALARMS: readonly {
  readonly state: ExpectedState;
  readonly level: typeof fail;
  readonly remedy: (found: Found) => string;
}[] = [
  { state: 'stalled', level: fail, remedy: why },
  { state: 'exhausted', level: fail, remedy: why },
  { state: 'cancelled', level: fail, remedy: why },
  {
    state: 'missing',
    level: fail,
    remedy: missed,
  },
  { state: 'held', level: warn, remedy: why },
  { state: 'deferred', level: warn, remedy: why },
];

async function checkEffects(db: Database): Promise<Check[]> {
  const waiting = await effectsForAPerson(db);
  if (waiting.length === 0) return [ok('effects', 'none waits for a person')];
  return waiting.map(({ key, state, count, movesMoney }) => {
    const what = `${count} of ${key} ${state.replaceAll('_', ' ')}`;
    const remedy = `npx onceper outbox list --key ${key}`;
    return movesMoney ? fail('effects', what, remedy) : warn('notices', what, remedy);
  });
}

/** A relay takes an effect within seconds of its time; five minutes of nobody taking it mean that none runs. */
const OVERDUE_MS = 300_000;

async function checkDelivery(db: Database): Promise<Check> {
  const overdue = await countOverdueEffects(db, OVERDUE_MS);
  if (overdue === 0) return ok('delivery', 'no effect is overdue');
  const which = overdue === 1 ? '1 effect has' : `${overdue} effects have`;
  return warn('delivery', `${which} been due for over five minutes`, 'npx onceper relay');
}
