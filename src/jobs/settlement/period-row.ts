import { OnceperError } from '../../kernel/error.ts';
import type { PeriodBounds } from '../../kernel/period.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { PeriodState } from '../../kernel/transitions.ts';
import { jobId } from './job-id.ts';

/** A period row, and the key whose closings it carries in: the latest earlier period that has a document. */
export interface PeriodRow {
  readonly period: string;
  readonly state: PeriodState;
  readonly sealedByFence: bigint | null;
  readonly sealedTotals: unknown;
  readonly previousKey: string | null;
}

/** Makes the period rows that are missing, ascending, each with the facts it was bounded by; what exists stays as it was. */
export async function preparePeriods(tx: Tx, periods: readonly PeriodBounds[]): Promise<void> {
  await tx.query(
    `insert into settlement.period (period, starts_on, ends_on, starts, ends, zone_facts)
     select b.period, b.starts_on, b.ends_on, b.starts, b.ends, b.zone_facts
       from unnest($1::text[], $2::date[], $3::date[], $4::timestamptz[], $5::timestamptz[], $6::text[])
            as b (period, starts_on, ends_on, starts, ends, zone_facts)
      where not exists (select from settlement.period p where p.period = b.period)
      order by b.starts
         on conflict do nothing`,
    [
      periods.map((bounds) => bounds.period),
      periods.map((bounds) => bounds.startsOn),
      periods.map((bounds) => bounds.endsOn),
      periods.map((bounds) => bounds.starts),
      periods.map((bounds) => bounds.ends),
      periods.map((bounds) => bounds.facts),
    ],
  );
}

/**
 * Reads a period without locking it. The document it carries from can't change while the period is settled: it needs its
 * predecessor, so that every earlier period is done or skipped before. Throws OnceperError `period_missing`.
 */
export async function readPeriod(tx: Tx, period: string): Promise<PeriodRow> {
  const row = await findPeriod(tx, period);
  if (row !== null) return row;
  throw new OnceperError({
    code: 'period_missing',
    message: `period ${period} has no row`,
    remedy: "open or import makes the rows of periods from the rule's first to the current one: check the rule's first",
    at: period,
  });
}

/** Reads a period as readPeriod does; null where it has no row yet, and so no transaction either. */
export async function findPeriod(tx: Tx, period: string): Promise<PeriodRow | null> {
  const { rows } = await tx.query<PeriodRow>(
    `select p.period, p.state, p.sealed_by_fence as "sealedByFence", p.sealed_totals as "sealedTotals",
            (select d.key
               from settlement.document d
               join settlement.period earlier on earlier.period = d.period
              where earlier.starts < p.starts and d.key = $2 || ':' || d.period
              order by earlier.starts desc
              limit 1) as "previousKey"
       from settlement.period p
      where p.period = $1`,
    [period, jobId],
  );
  return rows[0] ?? null;
}

/**
 * The next open period after another, held against a seal until the commit. It takes the later period rows `for share`,
 * ascending, and so waits for a seal under way. There is no state in the locking `where`: beside `for share` it would drop a
 * row that was sealed while we waited. Throws OnceperError `period_missing`, at `key`.
 */
export async function holdNextOpen(
  tx: Tx,
  { key, period }: { readonly key: string; readonly period: string },
): Promise<string> {
  const { rows } = await tx.query<{ period: string }>(
    `with later as materialized (
       select period, starts, state from settlement.period
        where starts > (select starts from settlement.period where period = $1)
        order by starts for share
     )
     select period from later where state = 'open' order by starts limit 1`,
    [period],
  );
  const [row] = rows;
  if (row !== undefined) return row.period;
  throw new OnceperError({
    code: 'period_missing',
    message: `no period after ${period} is open to take it`,
    remedy: 'open or import makes the rows of later periods: import something, or wait for the next tick',
    at: key,
  });
}
