import type { Instant, Tx } from '../../../kernel/sql.ts';
import { DERIVED_ID, type Naming, stagedRows } from './transactions.ts';

/**
 * From so many rows and such a share of what a file would add, rows that are equal to rows of other imports in everything but their ids
 * are no coincidence: the file came before, under another name or with other ids. Equal is the same merchant, currency, amount and
 * date (or instant); a subscription of the same price has another date each month.
 */
const FEWEST = 5;
const SHARE = 0.8;

/** A file that rows are known from, and how many. `importedAt` is null where no import is on record. */
export interface KnownFrom {
  readonly file: string;
  readonly importedAt: Instant | null;
  readonly rows: number;
}

/** Why a file is held: so many of the rows that it would add repeat stored ones. */
export interface Held {
  readonly repeats: number;
  readonly of: number;
  readonly from: readonly KnownFrom[];
  /** The first of them: its line, its id where it states one, and what it is equal to. */
  readonly samples: readonly {
    readonly line: number;
    readonly id: string | null;
    readonly storedId: string;
    readonly file: string;
  }[];
}

const SAMPLES = 5;

/** When a row was, by which it is compared: the same text in a file and stored, since the session's zone is one. */
const SAME = 't.merchant, t.currency, t.amount, coalesce(t.occurred_at::text, t.occurred_on::text)';
const MOMENT = 'coalesce(t.occurred_at::text, t.occurred_on::text) as moment';
const MOMENT_OF_NAMED = 'coalesce(n.occurred_at::text, n.occurred_on::text)';

/** The table of repeats of one import, before `matchRepeats` fills it. */
export async function createRepeats(tx: Tx): Promise<void> {
  await tx.query(
    `create temp table settlement_repeat (
       line int4 not null, stored_id text collate "C" not null, import_id bigint not null
     ) on commit drop`,
  );
}

/**
 * Finds the staged rows that repeat stored ones in everything but their ids, and that the insert would take for new: of several
 * equal ones the n-th in the file repeats the n-th that is stored. Stored rows which the file itself names by their ids explain
 * nothing. Asked before the insert; returns how many there are.
 */
export async function matchRepeats(tx: Tx, { source, identity }: Naming): Promise<number> {
  await nameRows(tx, { source, identity });
  await tx.query(NO_WALKS.off);
  const { rowCount } = await tx.query(
    `with mine as (
       select min(line) as line, merchant, currency, amount, moment,
              row_number() over (partition by merchant, currency, amount, moment order by min(line)) as nth
         from pg_temp.settlement_named
        where is_fresh
        group by transaction_id, merchant, currency, amount, moment
     ), stored as (
       select t.id, t.import_id, t.merchant, t.currency, t.amount, ${MOMENT},
              row_number() over (partition by ${SAME} order by t.import_id, t.id) as nth
         from settlement.transaction t
        where (t.merchant, t.currency, t.amount) in (select merchant, currency, amount from pg_temp.settlement_named where is_fresh)
          and t.period = any (array(select period from settlement.period
                                     where ends_on >= (select min(occurred_on) from pg_temp.settlement_named)))
          and not ($2 and t.source = $1 and t.id ~ '${DERIVED_ID}')
          and not exists (select from pg_temp.settlement_named n where t.source = $1 and n.transaction_id = t.id)
     )
     insert into pg_temp.settlement_repeat (line, stored_id, import_id)
     select line, id, import_id from mine join stored using (merchant, currency, amount, moment, nth)`,
    [source, identity === 'content'],
  );
  await tx.query(NO_WALKS.on);
  return rowCount;
}

/** The staged rows under their ids, and whether that id is new, as a table with statistics. */
async function nameRows(tx: Tx, { source, identity }: Pick<Naming, 'source' | 'identity'>): Promise<void> {
  await tx.query(
    `create temp table settlement_named (
       line int4, transaction_id text collate "C", merchant text collate "C", currency text collate "C", amount bigint,
       occurred_on date, moment text, is_fresh boolean
     ) on commit drop`,
  );
  await tx.query(
    `insert into pg_temp.settlement_named
     select n.line, n.transaction_id, n.merchant, n.currency, n.amount, n.occurred_on, ${MOMENT_OF_NAMED}, t.id is null
       from (${stagedRows(identity)}) n
       left join settlement.transaction t on t.source = $1 and t.id = n.transaction_id`,
    [source],
  );
  await tx.query('analyze pg_temp.settlement_named');
}

/** Rows of months without statistics look like a few: a nested loop would walk all rows of a merchant for each of them. */
const NO_WALKS = { off: 'set local enable_nestloop = off', on: 'set local enable_nestloop = on' };

/** Whether a person must say what a file is before it is stored. */
export function mostlyRepeats(repeats: number, added: number): boolean {
  return repeats >= FEWEST && repeats >= SHARE * added;
}

/** Takes the repeats for known: they are not inserted. */
export async function dropRepeats(tx: Tx): Promise<void> {
  await tx.query('delete from pg_temp.settlement_stage s using pg_temp.settlement_repeat r where r.line = s.line');
}

/** The figures and samples of a file that is held. */
export async function heldOf(tx: Tx, of: { readonly repeats: number; readonly added: number }): Promise<Held> {
  const { rows: samples } = await tx.query<Held['samples'][number]>(
    `select r.line, s.id, r.stored_id as "storedId", coalesce(i.file, '') as file
       from pg_temp.settlement_repeat r
       join pg_temp.settlement_stage s on s.line = r.line
       left join settlement.import i on i.id = r.import_id
      order by r.line
      limit ${SAMPLES}`,
  );
  const { rows: from } = await tx.query<KnownFrom>(
    `${KNOWN_FROM} from pg_temp.settlement_repeat r left join settlement.import i on i.id = r.import_id ${BY_FILE}`,
  );
  return { repeats: of.repeats, of: of.added, from, samples };
}

/**
 * The imports that the rows are known from which this one did not add, the largest part first: known by their ids (which of rows
 * without ids are their content), or taken for known as repeats.
 */
export async function knownFrom(tx: Tx, naming: Naming): Promise<readonly KnownFrom[]> {
  const { source, identity, importId } = naming;
  const { rows } = await tx.query<KnownFrom>(
    `with known as (
       select t.import_id from (${stagedRows(identity)}) s
         join settlement.transaction t on t.source = $1 and t.id = s.transaction_id
        where t.import_id <> $2
        union all
       select import_id from pg_temp.settlement_repeat
     )
     ${KNOWN_FROM} from known r left join settlement.import i on i.id = r.import_id ${BY_FILE}`,
    [source, importId],
  );
  return rows;
}

/** Of rows without ids that a person says are new only those are known that an earlier import of the same bytes stored. */
export async function knownFromSameBytes(tx: Tx, source: string, sha256: string): Promise<readonly KnownFrom[]> {
  const { rows } = await tx.query<KnownFrom>(
    `select file, at as "importedAt", added::int4 as rows
       from settlement.import
      where source = $1 and sha256 = $2 and added > 0
      order by added desc, id`,
    [source, sha256],
  );
  return rows;
}

const KNOWN_FROM = `select coalesce(i.file, '') as file, i.at as "importedAt", count(*)::int4 as rows`;
const BY_FILE = `group by r.import_id, i.file, i.at order by count(*) desc, r.import_id`;
