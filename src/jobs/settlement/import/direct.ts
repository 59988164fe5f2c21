import type pg from 'pg';
import { codeOf } from '../../../kernel/error.ts';
import { CopyStream, copyText } from './copy-stream.ts';
import { type PlaceOf, placesNow } from './placing.ts';
import { type FileRead, type Reading, readFile, type Sink } from './read-file.ts';
import type { StagedRow } from './source-format.ts';

/**
 * So many rows are one COPY statement; between two of them their merchants are noted. Fewer, and both sides wait for each other
 * more often; more, and the names of more merchants are in memory at once.
 */
const ROWS_A_COPY = 50_000;

/** What only the staging table can store: rows that are named by their content, and rows that stand in the ledger already. */
class NotDirect extends Error {}

/**
 * Stores a file's rows as they are read, each in the period that takes its date now: the server stores while we read, and no
 * row is written twice. It takes half the time of the staging table, which is for files that may hold what is known. Null
 * where this is one of those: then everything of it is rolled back, and nothing was decided.
 *
 * It leaves the merchants of its rows in pg_temp.settlement_stage, for those that follow to read.
 */
export async function storeDirectly(
  client: pg.ClientBase,
  of: Reading & { readonly importId: bigint },
): Promise<FileRead | null> {
  await client.query('savepoint direct');
  try {
    return await readFile(of, await directSink(client, of));
  } catch (error) {
    if (!(error instanceof NotDirect) && !isKnownRow(error)) throw error;
    return undoDirect(client);
  }
}

/** Takes back all that `storeDirectly` did: null, as where it could not. */
export async function undoDirect(client: pg.ClientBase): Promise<null> {
  await client.query('rollback to savepoint direct');
  return null;
}

/** The unique constraint, and no look before each row, tells that a row is known: a new file pays nothing for it. */
function isKnownRow(error: unknown): boolean {
  return codeOf(error) === '23505' && (error as { constraint?: unknown }).constraint === 'transaction_pk';
}

async function directSink(
  client: pg.ClientBase,
  { source, importId }: Reading & { readonly importId: bigint },
): Promise<Sink> {
  const placeOf = await placesNow(client);
  await client.query(
    `create temp table settlement_stage (
       line int4 not null, merchant text collate "C" not null, name text, canonical_name text collate "C"
     ) on commit drop`,
  );
  let copy: CopyStream | null = null;
  let rows = 0;
  let merchants = new Map<string, { readonly line: number; readonly name: string | null }>();

  async function endCopy(): Promise<void> {
    await copy?.end();
    copy = null;
    rows = 0;
    await noteMerchants(client, merchants);
    merchants = new Map();
  }

  return {
    add(row, line) {
      copy ??= new CopyStream(client, COPY);
      copy.add(copyLine(row, placeOf, source.name, importId));
      if (!merchants.has(row.merchant)) merchants.set(row.merchant, { line, name: row.name });
      rows += 1;
    },
    async flush() {
      await copy?.flush();
      if (rows >= ROWS_A_COPY) await endCopy();
    },
    async end() {
      await endCopy();
      await client.query('analyze pg_temp.settlement_stage');
    },
    abort: async (cause) => copy?.abort(cause),
  };
}

const COPY = `copy settlement.transaction
                   (source, id, merchant, currency, amount, occurred_on, occurred_at, period, late_from, import_id) from stdin`;

function copyLine(row: StagedRow, placeOf: PlaceOf, source: string, importId: bigint): string {
  if (row.id === null || row.canonicalName !== null) throw new NotDirect();
  const place = placeOf(row);
  // No open period takes it: the staging table's way says so in the words that everybody knows.
  if (place === null) throw new NotDirect();
  return (
    `${source}\t${copyText(row.id)}\t${copyText(row.merchant)}\t${row.currency}\t${row.amount}\t${row.occurredOn}` +
    `\t${row.occurredAt ?? '\\N'}\t${place.period}\t${place.lateFrom ?? '\\N'}\t${importId}\n`
  );
}

async function noteMerchants(
  client: pg.ClientBase,
  merchants: ReadonlyMap<string, { readonly line: number; readonly name: string | null }>,
): Promise<void> {
  if (merchants.size === 0) return;
  const named = [...merchants.values()];
  await client.query(
    `insert into pg_temp.settlement_stage (line, merchant, name)
     select * from unnest($1::int4[], $2::text[], $3::text[])`,
    [named.map(({ line }) => line), [...merchants.keys()], named.map(({ name }) => name)],
  );
}
