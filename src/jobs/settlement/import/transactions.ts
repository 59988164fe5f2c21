import type { Tx } from '../../../kernel/sql.ts';
import { type Refusal, refusalsKept } from './refusals.ts';

/** How a file's transactions are named: by ids of the source's own, or by their content. */
export type Identity = 'stated' | 'content';

/** What a transaction is called that is named by its content: a hash of that, and which of its equals it is. */
export const DERIVED_ID = '^[0-9a-f]{40}-[0-9]+$';

/** What names the rows of an import, and whose they are. */
export interface Naming {
  readonly source: string;
  readonly identity: Identity;
  readonly importId: bigint;
}

/**
 * The staged rows under the id that they are stored by, `sort_key, line` being the order of those ids. A row named by its
 * content gets a hash of it and the how-manieth row with that content it is: two identical rows are two, and the same rows
 * in another file or order are the same ones. The merchant's name is no part of it: it may be spelt anew.
 */
export function stagedRows(identity: Identity): string {
  return identity === 'stated'
    ? `select s.*, s.id as transaction_id, s.id as sort_key from pg_temp.settlement_stage s`
    : `select d.*, left(d.sort_key, 40) || '-' || d.nth as transaction_id from (${HASHED}) d`;
}

const HASHED = `select h.*, row_number() over (partition by h.sort_key order by h.line) as nth
  from (select s.*, encode(sha256(convert_to(concat_ws('|', s.merchant, s.currency, s.amount, coalesce(
                 to_char(s.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), s.occurred_on::text)),
                 'UTF8')), 'hex') as sort_key
          from pg_temp.settlement_stage s) h`;

/**
 * The same for rows without ids that a person says are new, whatever equals them: they are counted on from what is stored. What an
 * import of these very bytes ($3) stored is not new again, or a repeat after a lost answer would double it.
 */
const COUNTED_ON = `select d.*, left(d.sort_key, 40) || '-' || (k.last + d.nth - k.own) as transaction_id
  from (${HASHED}) d
 cross join lateral (
       select coalesce(max(substring(t.id from 42)::int8), 0) as last,
              count(*) filter (where t.import_id in (select id from settlement.import where source = $1 and sha256 = $3)) as own
         from settlement.transaction t
        where t.source = $1 and t.id > left(d.sort_key, 40) || '-' and t.id < left(d.sort_key, 40) || '.'
          and t.id ~ '${DERIVED_ID}') k
 where d.nth > k.own`;

/** One import at a time a source: two shuffled copies of a file would wait for each other's keys (15 of 15 deadlocked). */
export async function lockSource(tx: Tx, source: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('settlement import ' || $1::text, 0))`, [source]);
}

/** The id of an import, taken before its rows are stored and used by nothing else when it rolls back. */
export async function nextImportId(tx: Tx): Promise<bigint> {
  const { rows } = await tx.query<{ id: string }>(
    `select nextval(pg_get_serial_sequence('settlement.import', 'id'))::text as id`,
  );
  return BigInt(rows[0]?.id ?? '');
}

/** Which period each local date lies in, as a table with statistics: guessed at, the join took as long as the rest. */
export async function mapDays(tx: Tx): Promise<void> {
  await tx.query(
    `create temp table settlement_day on commit drop as
     select p.starts_on + d.day as occurred_on, p.period
       from settlement.period p cross join lateral generate_series(0, p.ends_on - p.starts_on - 1) as d (day)`,
  );
  await tx.query('analyze pg_temp.settlement_day');
}

/**
 * Stores the staged rows that are new, without locking a period: each tentatively in the period of its own date while that
 * is open, else in the next open one with its origin. Dates are placed by the map of days, instants by the periods'
 * instants. A row that no period takes fails on a null. With `allNew` rows without ids are new
 * whatever equals them. Returns how many were new.
 */
export async function insertTransactions(
  tx: Tx,
  of: Naming & { readonly allNew: boolean; readonly sha256: string },
): Promise<number> {
  const countsOn = of.allNew && of.identity === 'content';
  const { rowCount } = await tx.query(
    `with place as materialized (
       select p.period as origin,
              (select n.period from settlement.period n
                where n.state = 'open' and n.starts >= p.starts order by n.starts limit 1) as target
         from settlement.period p
     )
     insert into settlement.transaction
            (source, id, merchant, currency, amount, occurred_on, occurred_at, period, late_from, import_id)
     select $1, s.transaction_id, s.merchant, s.currency, s.amount, s.occurred_on, s.occurred_at,
            place.target, nullif(place.origin, place.target), $2
       from (${countsOn ? COUNTED_ON : stagedRows(of.identity)}) s
       left join pg_temp.settlement_day d on s.occurred_at is null and d.occurred_on = s.occurred_on
       left join lateral (
            select p.period from settlement.period p
             where s.occurred_at is not null and p.starts <= s.occurred_at order by p.starts desc limit 1) i on true
       left join place on place.origin = coalesce(d.period, i.period)
      order by s.sort_key, s.line
         on conflict (source, id) do nothing`,
    countsOn ? [of.source, of.importId, of.sha256] : [of.source, of.importId],
  );
  return rowCount;
}

/**
 * Rows whose id and content an earlier line of the file has already. One of them is stored; that the others are copies of it, and
 * not other transactions whose ids were spoilt, is a person's to say. Asked only where a row was not new.
 */
export async function repeatedRows(tx: Tx): Promise<{ refusals: readonly Refusal[]; total: number }> {
  const { rows } = await tx.query<{ line: number; id: string; first: number; total: number }>(
    `with often as (
       select id from pg_temp.settlement_stage group by id having count(*) > 1
     ), counted as (
       select s.line, s.id, min(s.line) over same as first
         from pg_temp.settlement_stage s join often using (id)
       window same as (partition by s.id, s.merchant, s.currency, s.amount, s.occurred_at,
                                    case when s.occurred_at is null then s.occurred_on end)
     )
     select line, id, first, (count(*) over ())::int4 as total from counted where line > first order by line limit $1`,
    [refusalsKept],
  );
  return {
    refusals: rows.map(({ line, id, first }) => ({
      line,
      reason: `id '${id}' repeats line ${first} with the same content; where such rows are one transaction, say --allow-repeats`,
    })),
    total: rows[0]?.total ?? 0,
  };
}

interface Conflict {
  readonly line: number;
  readonly id: string;
  readonly stored: string;
  readonly inThisFile: boolean;
  readonly total: number;
}

/**
 * Rows whose id is stored with another merchant, currency, amount or time, be it by this file's own earlier line or by an
 * import before it. Of a row with an instant the date is not compared: it was read off a clock, which may be known better by now. Asked after the insert, and only where a row was not new, so that a new file pays nothing for it.
 */
export async function conflictingRows(
  tx: Tx,
  of: { source: string; importId: bigint },
): Promise<{ refusals: readonly Refusal[]; total: number }> {
  const { rows } = await tx.query<Conflict>(
    `select s.line, s.id, concat_ws(' ', t.amount, t.currency, 'of', t.merchant, 'on', coalesce(t.occurred_at::text, t.occurred_on::text))
              as stored, t.import_id = $2 as "inThisFile", (count(*) over ())::int4 as total
       from pg_temp.settlement_stage s
       join settlement.transaction t on t.source = $1 and t.id = s.id
      where (s.merchant, s.currency, s.amount, s.occurred_at, case when s.occurred_at is null then s.occurred_on end)
            is distinct from (t.merchant, t.currency, t.amount, t.occurred_at, case when t.occurred_at is null then t.occurred_on end)
      order by s.line
      limit $3`,
    [of.source, of.importId, refusalsKept],
  );
  return {
    refusals: rows.map(({ line, id, stored, inThisFile }) => ({
      line,
      reason: `id '${id}' is ${inThisFile ? 'in this file' : 'stored'} already with other content (${stored}, in minor units)`,
    })),
    total: rows[0]?.total ?? 0,
  };
}
