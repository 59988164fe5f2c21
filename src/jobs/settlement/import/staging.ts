import type pg from 'pg';
import { CopyStream, copyText } from './copy-stream.ts';
import type { Sink } from './read-file.ts';
import type { StagedRow } from './source-format.ts';

/**
 * The staging table of one import, and the sink that fills it: temporary, so it is not logged, and gone with the transaction.
 */
export async function createStage(client: pg.ClientBase): Promise<Sink> {
  await client.query(
    `create temp table settlement_stage (
       line int4 not null,
       id text collate "C",
       merchant text collate "C" not null,
       name text,
       canonical_name text collate "C",
       currency text collate "C" not null,
       amount bigint not null,
       occurred_on date not null,
       occurred_at timestamptz
     ) on commit drop`,
  );
  const copy = new CopyStream(
    client,
    `copy pg_temp.settlement_stage (line, id, merchant, name, canonical_name, currency, amount, occurred_on, occurred_at)
     from stdin`,
  );
  return {
    add: (row, line) => copy.add(copyLine(row, line)),
    flush: () => copy.flush(),
    async end() {
      await copy.end();
      // Fresh statistics: without them the planner takes the table for a few rows and joins ten million by nested loops.
      await client.query('analyze pg_temp.settlement_stage');
    },
    abort: (cause) => copy.abort(cause),
  };
}

function copyLine(row: StagedRow, line: number): string {
  return (
    `${line}\t${copyText(row.id)}\t${copyText(row.merchant)}\t${copyText(row.name)}\t${copyText(row.canonicalName)}` +
    `\t${copyText(row.currency)}\t${row.amount}\t${row.occurredOn}\t${copyText(row.occurredAt)}\n`
  );
}
