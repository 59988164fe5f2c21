import { OnceperError } from '../../../kernel/error.ts';
import type { Tx } from '../../../kernel/sql.ts';

/** What is known of an import before its rows are placed for good. */
export interface ImportRecord {
  readonly importId: bigint;
  readonly source: string;
  readonly file: string;
  readonly sha256: string;
  readonly currencies: readonly string[];
  readonly rows: number;
  readonly added: number;
  /** The magnitudes of its rows added up; what a month holds at most is told by it (inspect.ts). */
  readonly magnitude: bigint;
  readonly actor: string;
  /** Which table of time zones read the dates of its instants. */
  readonly zoneFacts: string;
  /** How many rows the insert had to place late; counted before, not under the locks. */
  readonly late: number;
  /** The earliest period that took rows when the insert began: none of them can lie before it. */
  readonly earliestOpen: string;
}

/** The earliest period that takes rows. Throws OnceperError `period_missing`. */
export async function earliestOpenPeriod(tx: Tx, file: string): Promise<string> {
  const { rows } = await tx.query<{ period: string }>(
    `select period from settlement.period where state = 'open' order by starts limit 1`,
  );
  const [row] = rows;
  if (row !== undefined) return row.period;
  throw noPeriod(file);
}

/** How many of an import's rows are placed in a later period than that of their date. */
export async function countLate(tx: Tx, importId: bigint): Promise<number> {
  const { rows } = await tx.query<{ late: string }>(
    `select count(*)::text as late from settlement.transaction where import_id = $1 and late_from is not null`,
    [importId],
  );
  return Number(rows[0]?.late ?? '0');
}

/**
 * The import's last statement. It takes the period rows `for share`, ascending, and so waits for seals under way; rows of
 * periods sealed meanwhile move to the next open one, marked late with the period they leave. From here to the commit no
 * seal passes. There is no state in the locking `where`: beside `for share` it would drop a row that was sealed while we
 * waited, and its transactions with it. No later open period makes the target null, which fails. Returns the late rows.
 */
export async function placeForGood(tx: Tx, record: ImportRecord): Promise<number> {
  const { rows } = await tx.query<{ late: string }>(
    `with p as materialized (
       select period, starts, state from settlement.period
        where starts >= (select starts from settlement.period where period = $8)
        order by starts for share
     ), m as materialized (
       select p.period as origin,
              (select n.period from p n where n.state = 'open' and n.starts > p.starts order by n.starts limit 1) as target
         from p where p.state <> 'open'
     ), moved as (
       update settlement.transaction t set period = m.target, late_from = coalesce(t.late_from, t.period)
         from m
        where t.import_id = $1 and t.period = m.origin
       returning t.late_from = m.origin as is_newly_late
     )
     insert into settlement.import (id, source, file, sha256, rows, added, known, actor, currencies, zone_facts, magnitude, late)
     select $1, $2, $3, $4, $5::int8, $6::int8, $5::int8 - $6::int8, $7, $10, $11, $12,
            $9::int8 + (select count(*) from moved where is_newly_late)
      where (select count(*) from p) > 0
     returning late::text as late`,
    [
      record.importId,
      record.source,
      record.file,
      record.sha256,
      record.rows,
      record.added,
      record.actor,
      record.earliestOpen,
      record.late,
      record.currencies,
      record.zoneFacts,
      record.magnitude,
    ],
  );
  const [row] = rows;
  if (row !== undefined) return Number(row.late);
  throw noPeriod(record.file);
}

function noPeriod(file: string): OnceperError {
  return new OnceperError({
    code: 'period_missing',
    message: 'no period of the settlement job takes rows',
    remedy:
      'the period of today and the next one are made before an import: look for a hand that changed settlement.period',
    at: file,
  });
}
