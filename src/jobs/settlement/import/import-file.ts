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
import {
  createRepeats,
  dropRepeats,
  heldOf,
  type KnownFrom,
  knownFrom,
  knownFromSameBytes,
  matchRepeats,
  mostlyRepeats,
} from './repeats.ts';
import { sampleRepeats } from './sample-repeats.ts';
import { sourceNamed } from './source.ts';
import type { RowContext } from './source-format.ts';
import { createStage } from './staging.ts';
import { exceedingSums, isNearLimit } from './sums.ts';
import {
  conflictingRows,
  insertTransactions,
  lockSource,
  mapDays,
  type Naming,
  nextImportId,
  repeatedRows,
} from './transactions.ts';

/**
 * Imports a file of transactions: all of its rows in one transaction, or none and the list of rows that refuse it. It is
 * streamed from front to back in constant memory, plain or gz; a second time where it holds rows that are known. Importing rows again, whatever the file is called and whatever
 * its order, adds nothing; a file that mostly repeats stored rows under other ids is held for a person's word. Rows of periods that are sealed by the time of the commit belong to the next open one.
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
      const path = request.path ?? request.file;
      const of = { path, source, context: rowContext(request, now), importId: await nextImportId(tx) };
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

/** Stores a file of nothing but new rows, named by their source; null where it may have others, and nothing was done then. */
async function importDirectly(
  client: pg.ClientBase,
  tx: Tx,
  request: ImportRequest,
  of: Of,
): Promise<Outcome<Imported> | null> {
  if (request.as === 'known') return null;
  const refusals = new Refusals();
  const earliestOpen = await earliestOpenPeriod(tx, request.file);
  const file = await storeDirectly(client, { ...of, refusals });
  if (file === null) return null;
  if (refusals.total > 0 || file.read === 0) return refusedOutcome(request, file, refusals);
  if (await isNearLimit(tx, file.magnitude)) return undoDirect(client);
  const naming = { source: request.source, identity: file.identity, importId: of.importId };
  if (request.as === undefined && (await sampleRepeats(tx, naming, file.sample))) return undoDirect(client);
  await storeMerchants(tx, request.source);
  const known = { repeats: 0, knownFrom: [] };
  return place(tx, request, {
    ...file,
    ...known,
    importId: of.importId,
    added: file.read,
    earliestOpen,
    refusals: null,
  });
}

/**
 * Stores a file by way of the staging table, which tells new rows from known ones. Also one that is refused already: what
 * conflicts with the ledger is found by trying, and rolled back with the rest.
 */
async function importStaged(client: pg.ClientBase, tx: Tx, request: ImportRequest, of: Of): Promise<Outcome<Imported>> {
  const refusals = new Refusals();
  const file = await readFile({ ...of, refusals }, await createStage(client));
  if (file.read === 0) return refusedOutcome(request, file, refusals);
  const naming = { source: request.source, identity: file.identity, importId: of.importId };
  await storeMerchants(tx, request.source);
  refusals.addFound(await collidingMerchants(tx));
  const earliestOpen = await earliestOpenPeriod(tx, request.file);
  await mapDays(tx);
  const matched = await matchByContent(tx, request, { naming, file });
  const added = await insertTransactions(tx, { ...naming, sha256: file.sha256, allNew: request.as === 'new' });
  const repeats = await checkKnown(tx, request, { naming, file, added, refusals });
  if (refusals.total > 0) return refusedOutcome(request, file, refusals);
  if (request.as === undefined && mostlyRepeats(matched, added)) {
    const held = await heldOf(tx, { repeats: matched, added });
    return { keep: false, value: { kind: 'held', ...nothingOf(request, file), held, refused: [], refusedTotal: 0 } };
  }
  const from = added === file.rows ? [] : await filesKnownFrom(tx, request, { naming, file });
  const nearLimit = await isNearLimit(tx, file.magnitude);
  const known = { repeats, knownFrom: from, refusals: nearLimit ? refusals : null };
  return place(tx, request, { ...file, ...known, importId: of.importId, added, earliestOpen });
}

/** Compares the rows by content where that is asked for or a sample tells to, and leaves out what is to be known by it. */
async function matchByContent(
  tx: Tx,
  { as }: ImportRequest,
  { naming, file }: { readonly naming: Naming; readonly file: FileRead },
): Promise<number> {
  await createRepeats(tx);
  if (as === 'new') return 0;
  if (as === undefined && !(await sampleRepeats(tx, naming, file.sample))) return 0;
  const matched = await matchRepeats(tx, naming);
  if (as === 'known') await dropRepeats(tx);
  return matched;
}

function filesKnownFrom(
  tx: Tx,
  { as }: ImportRequest,
  { naming, file }: { readonly naming: Naming; readonly file: FileRead },
): Promise<readonly KnownFrom[]> {
  return as === 'new' && file.identity === 'content'
    ? knownFromSameBytes(tx, naming.source, file.sha256)
    : knownFrom(tx, naming);
}

/** Adds what known ids refuse, and returns how many rows repeat others of the file. */
async function checkKnown(
  tx: Tx,
  { allowRepeats }: ImportRequest,
  of: { readonly naming: Naming; readonly file: FileRead; readonly added: number; readonly refusals: Refusals },
): Promise<number> {
  if (of.file.identity !== 'stated' || of.added === of.file.read) return 0;
  of.refusals.addFound(await conflictingRows(tx, of.naming));
  const repeated = await repeatedRows(tx);
  if (allowRepeats !== true) of.refusals.addFound(repeated);
  return repeated.total;
}

interface ToPlace extends FileRead, Pick<ImportRecord, 'importId' | 'added' | 'earliestOpen'> {
  readonly repeats: number;
  readonly knownFrom: readonly KnownFrom[];
  /** Where the sums are near to what can be held, and so are checked once it is decided in which period each row is. */
  readonly refusals: Refusals | null;
}

async function place(tx: Tx, request: ImportRequest, of: ToPlace): Promise<Outcome<Imported>> {
  const { source, file, actor, rule } = request;
  const { importId, added, earliestOpen, rows, sha256, currencies, refusals, repeats } = of;
  const magnitude = added === 0 ? 0n : of.magnitude;
  const zoneFacts = clockIn(rule).facts;
  const about = { importId, source, file, sha256, currencies, rows, added, magnitude, actor, zoneFacts, earliestOpen };
  const late = await placeForGood(tx, { ...about, late: await countLate(tx, importId) });
  if (refusals !== null) {
    refusals.addFound(await exceedingSums(tx, importId));
    if (refusals.total > 0) return refusedOutcome(request, of, refusals);
  }
  const counts = { file, source, rows, added, known: rows - added, late, repeats };
  const { as = null, allowRepeats = false } = request;
  await request.audit?.(tx, { ...counts, sha256, as, allowRepeats });
  const value = { kind: 'imported', ...counts, knownFrom: of.knownFrom, refused: [], refusedTotal: 0 } as const;
  return { keep: true, value };
}

function refusedOutcome(
  request: ImportRequest,
  { rows }: { readonly rows: number },
  refusals: Refusals,
): Outcome<Imported> {
  const refused = refusals.inOrder();
  const value = { kind: 'refused', ...nothingOf(request, { rows }), refused, refusedTotal: refusals.total } as const;
  return { keep: false, value };
}

function nothingOf({ file, source }: ImportRequest, { rows }: { readonly rows: number }) {
  return { file, source, rows, added: 0, known: 0, late: 0, repeats: 0, knownFrom: [] } as const;
}
