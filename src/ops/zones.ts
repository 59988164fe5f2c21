import type { Client } from '@temporalio/client';
import type { Registry } from '../jobs/registry.ts';
import { type JobRule, periodCalendar } from '../jobs/rule.ts';
import { instantOf, instantPlus } from '../kernel/instant.ts';
import { existingPeriod, periodBounds } from '../kernel/period.ts';
import type { Instant } from '../kernel/sql.ts';
import { clockIn, clockOfProcess, firstDisagreement, offsetText, type ZoneClock } from '../kernel/zone-clock.ts';
import { clockOf, type Database } from '../store/database.ts';
import { activeRule } from '../store/rules.ts';
import { clockOfServer } from '../store/zone-tables.ts';
import { activeRuleOf } from './rule.ts';
import { clockOfTemporal } from './temporal-zone.ts';

/** Whose table of time zones it is: what Node brought along, what the database has, what Temporal's server has. */
type ZoneTableOf = 'this process' | 'PostgreSQL' | 'Temporal';

/** What the three tables read where they first differ, and which of them stands alone against the two others. */
export interface ZoneDispute {
  readonly at: Instant;
  readonly reads: Readonly<Record<ZoneTableOf, string>>;
  readonly odd: ZoneTableOf | null;
  /** What the ledger goes by. */
  readonly ledger: string;
}

/** A job's zone: the facts that decide, and where the tables dispute them first; null where all agree. */
export interface ZoneStanding {
  readonly job: string;
  readonly zone: string;
  readonly facts: string;
  readonly from: Instant;
  readonly to: Instant;
  readonly dispute: ZoneDispute | null;
}

/** How far ahead the tables must agree: as far as schedules are written out. */
const AHEAD_HOURS = 2 * 366 * 24;

/**
 * Compares, for each job that has a rule, the tables of its zone from its first period to two years ahead: the ledger's with what
 * Node, PostgreSQL and Temporal's server say now. The ledger's decides whatever the others say; a dispute tells that one of the
 * machines is behind the law. Temporal is asked by a schedule of its own that never fires, and is deleted again.
 */
export async function compareZones(
  db: Database,
  client: Client,
  ask: { readonly registry: Registry; readonly clockOfProcess?: (zone: string) => ZoneClock },
): Promise<ZoneStanding[]> {
  const standings: ZoneStanding[] = [];
  for (const job of ask.registry.ids) {
    if ((await activeRule(db, job)) !== null) standings.push(await standingOf(db, client, { ...ask, job }));
  }
  return standings;
}

async function standingOf(
  db: Database,
  client: Client,
  ask: { readonly registry: Registry; readonly job: string; readonly clockOfProcess?: (zone: string) => ZoneClock },
): Promise<ZoneStanding> {
  const { job } = ask;
  const { rule } = await activeRuleOf(db, ask.registry, job);
  const { zone, first } = rule;
  const ledger = clockIn(rule);
  const from = periodBounds(existingPeriod(first, periodCalendar(rule)), periodCalendar(rule)).starts;
  const to = instantPlus(await clockOf(db), { hours: AHEAD_HOURS });
  const process = (ask.clockOfProcess ?? clockOfProcess)(zone);
  const { clock: postgres } = await clockOfServer(db, zone, first);
  const temporal = await clockOfTemporal(client, zone, { from, to, candidates: [ledger, process, postgres] });
  const tables = { 'this process': process, PostgreSQL: postgres, Temporal: temporal } as const;
  return { job, zone, facts: ledger.facts, from, to, dispute: disputeOf(ledger, tables, from, to) };
}

function disputeOf(
  ledger: ZoneClock,
  tables: Readonly<Record<ZoneTableOf, ZoneClock>>,
  from: Instant,
  to: Instant,
): ZoneDispute | null {
  const found = Object.values(tables).flatMap((table) => firstDisagreement(ledger, table, from, to) ?? []);
  const [first] = found.toSorted((a, b) => instantOf(a.at).epochMilliseconds - instantOf(b.at).epochMilliseconds);
  if (first === undefined) return null;
  const second = instantOf(first.at).epochMilliseconds / 1_000;
  const reads = {
    'this process': offsetText(tables['this process'].offsetAt(second)),
    PostgreSQL: offsetText(tables.PostgreSQL.offsetAt(second)),
    Temporal: offsetText(tables.Temporal.offsetAt(second)),
  };
  return { at: first.at, reads, odd: oddOf(reads), ledger: offsetText(first.offsets[0]) };
}

/** The table that reads another time than the two others, which agree; null where all differ, or only the ledger does. */
function oddOf(reads: Readonly<Record<ZoneTableOf, string>>): ZoneTableOf | null {
  const tables = ['this process', 'PostgreSQL', 'Temporal'] as const;
  const alone = tables.filter((table) => tables.filter((other) => reads[other] === reads[table]).length === 1);
  return alone.length === 1 ? (alone[0] ?? null) : null;
}

/** A dispute in one sentence, for doctor and for the log of a process that starts. */
export function disputeText({ zone, facts }: Pick<ZoneStanding, 'zone' | 'facts'>, dispute: ZoneDispute): string {
  const { at, reads, odd, ledger } = dispute;
  const table = (name: ZoneTableOf, whose: string) => `${whose} ${reads[name]}`;
  const all = [
    table(
      'this process',
      `this process (Node ${process.versions.node}, tz ${process.versions['tz'] ?? 'unknown'}) reads`,
    ),
    table('PostgreSQL', 'PostgreSQL'),
    table('Temporal', "Temporal's server"),
  ].join(', ');
  const who = odd === null ? 'they differ' : `${odd} is the odd one`;
  return `${zone} from ${at} on: ${all}; ${who}. The ledger goes by ${ledger} (${facts})`;
}

/**
 * Where this process reads a job's clock otherwise than the ledger, up to now, in a sentence: whoever imports on such a machine should
 * know that rows are placed by the ledger's. Null where they agree.
 */
export function disputeWithProcess(
  rule: JobRule,
  now: Instant,
): { readonly at: Instant; readonly text: string } | null {
  const calendar = periodCalendar(rule);
  const ledger = clockIn(rule);
  const { starts } = periodBounds(existingPeriod(rule.first, calendar), calendar);
  const found = firstDisagreement(ledger, clockOfProcess(rule.zone), starts, now);
  if (found === null) return null;
  const [ours, theirs] = found.offsets.map(offsetText);
  const text = `${rule.zone} from ${found.at} on: this process (tz ${process.versions['tz'] ?? 'unknown'}) reads ${theirs}; rows are placed by the ledger's ${ours} (${ledger.facts})`;
  return { at: found.at, text };
}
