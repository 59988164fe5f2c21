import type { Tx } from '../../../kernel/sql.ts';
import type { StagedRow } from './source-format.ts';
import { DERIVED_ID, type Naming } from './transactions.ts';

/** Below the share from which a file is held (repeats.ts), by more than a sample errs: what it lets pass would not be held. */
const SUSPICIOUS = 0.7;

/** Rows of a merchant and currency in a period that are looked at for one row of the sample. */
const LOOKED_AT = 100;

/** Whether a row of the file and a stored one are equal in everything but their ids. */
const EQUAL = `t.merchant = s.merchant and t.currency = s.currency and t.amount = s.amount
  and case when s.occurred_at is null then t.occurred_at is null and t.occurred_on = s.occurred_on
           else t.occurred_at = s.occurred_at end`;

/** Rows of other imports; of rows that are named by their content those of this source are known by it already. */
const OF_OTHERS = `t.import_id <> $8 and not ($9 and t.source = $7 and t.id ~ '${DERIVED_ID}')`;

const SAMPLE = `sample as materialized (
    select * from unnest($1::text[], $2::text[], $3::int8[], $4::date[], $5::timestamptz[], $6::text[]) with ordinality
             as s (merchant, currency, amount, occurred_on, occurred_at, id, place)
  ), filled as materialized (
    select p.period, p.ends_on from settlement.period p
     where (select true from settlement.transaction t where t.period = p.period limit 1)
  )`;

/**
 * Whether the new rows of a file may mostly repeat what other imports stored, by a sample of it: true also where the whole
 * comparison then finds fewer, false only where it would. Each row of the sample is looked for among a bounded number of its
 * merchant's rows, by the index: 20 to 200 ms whatever the file's size. Where most merchants have more rows than that, the rows of the
 * periods are read once (600,000 rows: about a second on a loaded machine).
 */
export async function sampleRepeats(tx: Tx, naming: Naming, sample: readonly StagedRow[]): Promise<boolean> {
  const values = valuesOf(naming, sample);
  const { fresh, decided, equal } = await probe(tx, values);
  if (fresh === 0) return false;
  if (2 * decided >= fresh) return equal > 0 && equal >= SUSPICIOUS * decided;
  return (await scan(tx, values)) >= SUSPICIOUS * fresh;
}

function valuesOf({ source, identity, importId }: Naming, sample: readonly StagedRow[]): unknown[] {
  return [
    sample.map((row) => row.merchant),
    sample.map((row) => row.currency),
    sample.map((row) => row.amount),
    sample.map((row) => row.occurredOn),
    sample.map((row) => row.occurredAt),
    sample.map((row) => row.id),
    source,
    importId,
    identity === 'content',
  ];
}

interface Judged {
  /** Rows of the sample whose id is not stored. */
  readonly fresh: number;
  /** Of these, those that have an equal, or whose merchant's rows were all looked at. */
  readonly decided: number;
  readonly equal: number;
}

/** An equal row lies in the period of its date or, come too late for that, in a later one. */
async function probe(tx: Tx, values: readonly unknown[]): Promise<Judged> {
  const { rows } = await tx.query<Judged>(
    `with ${SAMPLE}, judged as (
       select f.is_equal, f.is_cut,
              (select true from settlement.transaction t where t.source = $7 and t.id = s.id and t.import_id <> $8) as is_known
         from sample s
        cross join lateral (
              select coalesce(bool_or(t.is_equal), false) as is_equal, coalesce(bool_or(t.looked_at = ${LOOKED_AT}), false) as is_cut
                from filled p
               cross join lateral (
                     select ${OF_OTHERS} and ${EQUAL} as is_equal, count(*) over () as looked_at
                       from (select * from settlement.transaction t
                              where t.period = p.period and t.merchant = s.merchant and t.currency = s.currency
                              limit ${LOOKED_AT}) t) t
               where p.ends_on >= s.occurred_on) f
     )
     select count(*)::int4 as fresh, count(*) filter (where is_equal or not is_cut)::int4 as decided,
            count(*) filter (where is_equal)::int4 as equal
       from judged
      where is_known is null`,
    values,
  );
  return rows[0] ?? { fresh: 0, decided: 0, equal: 0 };
}

/**
 * How many rows of the sample have an equal: by one pass over the rows, for a merchant with millions would be walked for each. Rows
 * that were stored a moment ago have no statistics, so that the planner takes them for a few and would walk or sort them all.
 */
async function scan(tx: Tx, values: readonly unknown[]): Promise<number> {
  await tx.query('set local enable_nestloop = off');
  await tx.query('set local enable_mergejoin = off');
  const { rows } = await tx.query<{ equal: number }>(
    `with ${SAMPLE}
     select count(distinct s.place)::int4 as equal
       from sample s
       join settlement.transaction t on ${EQUAL}
      where t.period = any (array(select period from filled where ends_on >= (select min(occurred_on) from sample)))
        and ${OF_OTHERS}`,
    values,
  );
  await tx.query('set local enable_nestloop = on');
  await tx.query('set local enable_mergejoin = on');
  return rows[0]?.equal ?? 0;
}
