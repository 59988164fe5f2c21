import type pg from 'pg';
import type { Instant, Tx } from '../../../kernel/sql.ts';
import { clockIn, localDate } from '../../../kernel/zone-clock.ts';
import { periodsAhead } from '../../due.ts';
import { type JobRule, periodCalendar } from '../../rule.ts';
import { sha256 as sha256Of } from '../document.ts';
import { preparePeriods } from '../period-row.ts';
import { inTransaction, type Outcome, onConnection } from './connection.ts';
import { storeDirectly, undoDirect } from './direct.ts';
import type { Imported, ImportRequest } from './imported.ts';
import { collidingMerchants, storeMerchants } from './merchants.ts';
import { countLate, earliestOpenPeriod, type ImportRecord, placeForGood } from './place.ts';
import { dateReader } from './read-date.ts';
import { type FileRead, type Reading, readFile } from './read-file.ts';
import { Refusals } from './refusals.ts';
import { sourceNamed } from './source.ts';
import type { RowContext } from './source-format.ts';
import { createStage } from './staging.ts';
import { exceedingSums, isNearLimit } from './sums.ts';
import {
  conflictingRows,
  insertTransactions,
  lockSource,
  mapDays,
  nextImportId,
  repeatedRows,
} from './transactions.ts';

/**
 * Imports a file of transactions: all of its rows in one transaction, or none and the list of rows that refuse it. It is
 * streamed from front to back in constant memory, plain or gz; a second time where it holds rows that are known. Importing rows again, whatever the file is called and whatever
 * its order, adds nothing. Rows of periods that are sealed by the time of the commit belong to the next open one.
 *
 * Throws OnceperError `unknown_source`, `file_unreadable`, `period_missing`, `commit_unknown` (import the file again: what is
 * stored is recognised), and after roll-back what pg throws.
 */
export async function importFile(request: ImportRequest): Promise<Imported> {
  const source = sourceNamed(request.source);
  return onConnection(request.connect, async (client) => {
    const now = await inTransaction(client, (tx) => preparePeriodsAhead(tx, request.rule));
    return inTransaction(client, async (tx) => {
      await lockSource(tx, request.source);
      const of = { path: request.file, source, context: rowContext(request, now), importId: await nextImportId(tx) };
      return (await importDirectly(client, tx, request, of)) ?? (await importStaged(client, tx, request, of));
    });
  });
}

/** Makes the period rows that may be missing, in a short transaction before the long one, and reads the database's clock. */
async function preparePeriodsAhead(tx: Tx, rule: JobRule): Promise<Outcome<Instant>> {
  const { rows } = await tx.query<{ now: string }>(
    `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`,
  );
  const now = rows[0]?.now ?? '';
  await preparePeriods(tx, periodsAhead(rule, now));
  return { keep: true, value: now };
}

function rowContext({ rule, sha256 = sha256Of }: ImportRequest, now: Instant): RowContext {
  const calendar = periodCalendar(rule);
  return { sha256, readDate: dateReader({ calendar, first: rule.first, today: localDate(now, calendar) }) };
}

type Of = Omit<Reading, 'refusals'> & { readonly importId: bigint };

/** Stores a file of nothing but new rows, named by their source; null where it has others, and nothing was done then. */
async function importDirectly(
  client: pg.ClientBase,
  tx: Tx,
  request: ImportRequest,
  of: Of,
): Promise<Outcome<Imported> | null> {
  const refusals = new Refusals();
  const earliestOpen = await earliestOpenPeriod(tx, request.file);
  const file = await storeDirectly(client, { ...of, refusals });
  if (file === null) return null;
  if (refusals.total > 0 || file.read === 0) return outcomeOf(request, file, NOTHING, refusals);
  if (await isNearLimit(tx, file.magnitude)) return undoDirect(client);
  await storeMerchants(tx, request.source);
  const stored = await place(tx, request, { ...file, importId: of.importId, added: file.read, earliestOpen });
  return outcomeOf(request, file, stored, refusals);
}

/**
 * Stores a file by way of the staging table, which tells new rows from known ones. Also one that is refused already: what
 * conflicts with the ledger is found by trying, and rolled back with the rest.
 */
async function importStaged(client: pg.ClientBase, tx: Tx, request: ImportRequest, of: Of): Promise<Outcome<Imported>> {
  const refusals = new Refusals();
  const file = await readFile({ ...of, refusals }, await createStage(client));
  if (file.read === 0) return outcomeOf(request, file, NOTHING, refusals);
  const { source } = request;
  const { importId } = of;
  await storeMerchants(tx, source);
  refusals.addFound(await collidingMerchants(tx));
  const earliestOpen = await earliestOpenPeriod(tx, request.file);
  await mapDays(tx);
  const added = await insertTransactions(tx, { source, identity: file.identity, importId });
  let repeats = 0;
  if (file.identity === 'stated' && added < file.read) {
    refusals.addFound(await conflictingRows(tx, { source, importId }));
    const repeated = await repeatedRows(tx);
    if (request.allowRepeats !== true) refusals.addFound(repeated);
    repeats = repeated.total;
  }
  if (refusals.total > 0) return outcomeOf(request, file, NOTHING, refusals);
  const nearLimit = await isNearLimit(tx, file.magnitude);
  const stored = await place(tx, request, { ...file, importId, added, earliestOpen });
  // Only now is it decided in which period each row is.
  if (nearLimit) refusals.addFound(await exceedingSums(tx, importId));
  return outcomeOf(request, file, { ...stored, repeats }, refusals);
}

interface Stored {
  readonly repeats: number;
  readonly added: number;
  readonly late: number;
}

const NOTHING: Stored = { added: 0, late: 0, repeats: 0 };

async function place(
  tx: Tx,
  { source, file, actor, rule }: ImportRequest,
  of: FileRead & Pick<ImportRecord, 'importId' | 'added' | 'earliestOpen'>,
): Promise<Stored> {
  const { importId, added, earliestOpen, rows, sha256, currencies, magnitude } = of;
  const late = await countLate(tx, importId);
  const zoneFacts = clockIn(rule).facts;
  const record = {
    zoneFacts,
    importId,
    source,
    file,
    sha256,
    currencies,
    rows,
    added,
    magnitude,
    actor,
    late,
    earliestOpen,
  };
  return { added, late: await placeForGood(tx, record), repeats: 0 };
}

function outcomeOf(request: ImportRequest, file: FileRead, stored: Stored, refusals: Refusals): Outcome<Imported> {
  const of = { file: request.file, source: request.source, rows: file.rows };
  if (refusals.total > 0) {
    const refused = refusals.inOrder();
    const value = {
      kind: 'refused',
      ...of,
      added: 0,
      known: 0,
      late: 0,
      repeats: 0,
      refused,
      refusedTotal: refusals.total,
    } as const;
    return { keep: false, value };
  }
  const known = file.rows - stored.added;
  return { keep: true, value: { kind: 'imported', ...of, ...stored, known, refused: [], refusedTotal: 0 } };
}
