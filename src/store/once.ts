import { createHash } from 'node:crypto';
import { codeOf, OnceperError } from '../kernel/error.ts';
import type { Json } from '../kernel/json.ts';
import type { Tx } from '../kernel/sql.ts';
import { type Database, transaction } from './database.ts';
import { inServersWords } from './fault.ts';
import { type OncePlan, oncePlan } from './once-plan.ts';
import { recallOne, recallTogether } from './once-recall.ts';
import { type Asked, askedOf, fingerprint, type SqlWork, STORED_RESULT } from './once-work.ts';

/**
 * What became of an item. `done`: its work was executed now. `duplicate`: it had been, with this very request, and here is
 * the result of that time. `conflict`: it had been, with another request; nothing was executed. Fingerprints are hex.
 */
export type ItemOutcome =
  | { readonly kind: 'done'; readonly result: Json }
  | { readonly kind: 'duplicate'; readonly result: Json }
  | { readonly kind: 'conflict'; readonly asked: string; readonly stored: string };

/**
 * The work of an item as a function; what it writes through `tx` is committed with the key, or not at all. What it returns is given
 * back as JSON has it, as every duplicate gets it.
 */
export type FunctionWork = (tx: Tx) => Promise<Json | undefined>;

/** What the statement says of an item: `differs` is the stored fingerprint where that is another. */
export interface Answer {
  readonly won: boolean;
  readonly differs: string | null;
  readonly result: Json;
}

/** The result is stored later, by a statement of its own: nothing is read from the claim. */
const CLAIM_ONLY: SqlWork = { steps: {}, result: { known: 'null' } };

/**
 * Does the work of `key` once, whoever asks however often. Key, work and result are written together: all three are committed
 * or none, and after a rollback the key is free. Of callers at once the first works; the others wait for its transaction to
 * end, and get its result. Work that is SQL takes one round trip; a function takes two beside its own.
 *
 * On a transaction's `tx` it is part of that transaction, which must be READ COMMITTED and must be rolled back when this
 * throws (a function that throws makes it unable to commit). On a Database it is a transaction of its own; when the answer
 * to that is lost, the key is asked once more, so that a `duplicate` may be this caller's own work.
 *
 * Not covered: what the work does outside this database. Throws OnceperError `malformed_item`, `unguarded_work`, and what the
 * database throws (`lock_timeout`, `deadlock`, `constraint`, …; a mistake in the work's SQL in PostgreSQL's own words); nothing was
 * done then, and the call may be repeated.
 */
export async function once(
  tx: Tx | Database,
  key: string,
  request: Json,
  work: SqlWork | FunctionWork,
): Promise<ItemOutcome> {
  const asked = askedOf(key, request);
  try {
    return await ('pool' in tx ? performUntilAnswered(tx, asked, work) : perform(tx, asked, work));
  } catch (error) {
    throw inServersWords(error);
  }
}

async function performUntilAnswered(db: Database, asked: Asked, work: SqlWork | FunctionWork): Promise<ItemOutcome> {
  try {
    return await performAlone(db, asked, work);
  } catch (error) {
    if (!isAnswerLost(error)) throw error;
    return performAlone(db, asked, work);
  }
}

/** The transaction may have been committed or not. Asked again under its key it waits for that, and tells. */
export function isAnswerLost(error: unknown): boolean {
  const code = codeOf(error);
  return code === 'commit_unknown' || code === 'connection_lost';
}

/** In a transaction of its own, which a single statement is already. */
function performAlone(db: Database, asked: Asked, work: SqlWork | FunctionWork): Promise<ItemOutcome> {
  if (typeof work !== 'function') return performSql(db, asked, work);
  return transaction(db, {}, (tx) => performFunction(tx, asked, work));
}

function perform(tx: Tx, asked: Asked, work: SqlWork | FunctionWork): Promise<ItemOutcome> {
  return typeof work === 'function' ? performFunction(tx, asked, work) : performSql(tx, asked, work);
}

/**
 * One statement, whatever is found. Where most were duplicates of late it is a plain select that comes first, which costs
 * two thirds of it; the estimate moves costs only.
 */
async function performSql(tx: Tx | Database, asked: Asked, work: SqlWork): Promise<ItemOutcome> {
  const plan = oncePlan(work);
  if (plan.expectsDuplicate()) {
    const found = await ('pool' in tx ? recallTogether(tx, plan.resultIn, asked) : recallOne(tx, plan.resultIn, asked));
    plan.learn(found !== null);
    if (found !== null) return { kind: 'duplicate', result: found.result };
  }
  const answer = await win(tx, asked, plan, work.values ?? []);
  plan.learn(!answer.won);
  return outcomeOf(asked, answer);
}

async function performFunction(tx: Tx, asked: Asked, work: FunctionWork): Promise<ItemOutcome> {
  const answer = await win(tx, asked, oncePlan(CLAIM_ONLY), []);
  if (!answer.won) return outcomeOf(asked, answer);
  try {
    const text = resultText(asked.key, await work(tx));
    await storeResult(tx, asked.key, text);
    return { kind: 'done', result: JSON.parse(text) as Json };
  } catch (error) {
    await spoil(tx);
    throw error;
  }
}

/** Inserts the key and does the work that is in the statement, or says what stands under the key. */
async function win(tx: Tx, asked: Asked, plan: OncePlan, values: readonly unknown[]): Promise<Answer> {
  const { rows } = await tx.query<Answer>(plan.text, [...values, asked.key, asked.request], plan.name);
  const [answer] = rows;
  if (answer !== undefined) return answer;
  // Another held the key when this statement began, and has committed since: only a new statement sees its row.
  const found = await recall(tx, asked);
  if (found !== null) return found;
  throw blind(asked.key);
}

/** What stands under the key; locks nothing and writes nothing. */
async function recall(tx: Tx, asked: Asked): Promise<Answer | null> {
  const { rows } = await tx.query<Answer>(
    `select false as won, case when item.request_hash <> ${fingerprint('$2')} then encode(item.request_hash, 'hex') end as differs,
            ${STORED_RESULT} as result
       from onceper.item
      where item.key = $1`,
    [asked.key, asked.request],
    'onceper once recall',
  );
  return rows[0] ?? null;
}

/** A result as it is stored and given to duplicates: work that returns nothing has the result null. */
function resultText(key: string, result: Json | undefined): string {
  let why = 'it is a function or a symbol';
  try {
    // Says undefined of what JSON has no word for.
    const text = JSON.stringify(result ?? null) as string | undefined;
    if (text !== undefined) return text;
  } catch (error) {
    why = error instanceof Error ? error.message : String(error);
  }
  throw new OnceperError({
    code: 'malformed_item',
    message: `the result of the work can't be written as JSON: ${why}`,
    remedy: 'return texts, booleans, lists and finite numbers; amounts as text; nothing was done',
    at: key,
  });
}

async function storeResult(tx: Tx, key: string, text: string): Promise<void> {
  const { rowCount } = await tx.query(
    'insert into onceper.item_result (key, result) values ($1, $2::jsonb)',
    [key, text],
    'onceper once store',
  );
  if (rowCount !== 1) throw blind(key);
}

/**
 * Makes the transaction unable to commit. A caller that swallowed the error of its work and committed would leave a key that
 * was won, without its work.
 */
async function spoil(tx: Tx): Promise<void> {
  try {
    await tx.query(`do $$ begin raise exception 'the work of an item failed: its transaction is rolled back'; end $$`);
  } catch {
    // The error is the purpose; where the connection is gone, nothing can be committed on it either.
  }
}

/** The outcome of an answer about this item. */
function outcomeOf(asked: Asked, answer: Answer): ItemOutcome {
  if (answer.differs !== null) return { kind: 'conflict', asked: hashOf(asked), stored: answer.differs };
  return { kind: answer.won ? 'done' : 'duplicate', result: answer.result };
}

/** The fingerprint as the server takes it, in hex. */
export function hashOf({ request }: Asked): string {
  return createHash('sha256').update(request).digest('hex');
}

/** Nobody's key and not ours: the transaction can't see what was committed since it began. */
export function blind(key: string): OnceperError {
  return new OnceperError({
    code: 'not_read_committed',
    message: 'the item was won by another, and this transaction cannot see it',
    remedy: 'call once in a READ COMMITTED transaction, and leave the rows of onceper.item alone',
    at: key,
  });
}
