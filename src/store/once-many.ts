import type { Tx } from '../kernel/sql.ts';
import type { Database } from './database.ts';
import { inServersWords } from './fault.ts';
import { type Answer, blind, hashOf, type ItemOutcome, isAnswerLost } from './once.ts';
import { foundMany, manyStatement } from './once-plan.ts';
import { type Asked, askedOf, type Item, type SqlWork } from './once-work.ts';

interface KeyedAnswer extends Answer {
  readonly key: string;
}

/**
 * `once` for a batch, in one statement: new items are done, and done ones and conflicts are told, each as if asked alone, in the
 * order of `items`. The relation `claim` holds a row for each item that was won. An item that is in the batch twice is done by its
 * first request; the second is a `duplicate` or a `conflict`.
 *
 * All that is new is committed together or not at all. Keys are taken in their order whatever that of `items`, so batches with
 * common keys wait and never deadlock; a caller that makes several batches in one transaction must order those. Throws what
 * `once` throws; nothing was done then, and the call may be repeated.
 */
export async function onceMany(tx: Tx | Database, items: readonly Item[], work: SqlWork): Promise<ItemOutcome[]> {
  const asked = items.map(({ key, request }) => askedOf(key, request));
  if (asked.length === 0) return [];
  try {
    return await ('pool' in tx ? performUntilAnswered(tx, asked, work) : perform(tx, asked, work));
  } catch (error) {
    throw inServersWords(error);
  }
}

async function performUntilAnswered(db: Database, asked: readonly Asked[], work: SqlWork): Promise<ItemOutcome[]> {
  try {
    return await perform(db, asked, work);
  } catch (error) {
    if (!isAnswerLost(error)) throw error;
    return perform(db, asked, work);
  }
}

async function perform(tx: Tx, asked: readonly Asked[], work: SqlWork): Promise<ItemOutcome[]> {
  const firsts = new Map<string, Asked>();
  for (const one of asked) if (!firsts.has(one.key)) firsts.set(one.key, one);
  const answers = await answersOf(tx, [...firsts.values()], work);
  return asked.map((one) => {
    const first = firsts.get(one.key);
    const answer = answers.get(one.key);
    if (first === undefined || answer === undefined) throw blind(one.key);
    return outcomeOf(one, first, answer);
  });
}

/** One statement, and a second only where another won keys of ours while it ran. */
async function answersOf(tx: Tx, asked: readonly Asked[], work: SqlWork): Promise<ReadonlyMap<string, Answer>> {
  // Without a name: a plan that is kept knows nothing of the batch's size and joins it in loops.
  const { rows } = await tx.query<KeyedAnswer>(manyStatement(work), [...(work.values ?? []), ...columnsOf(asked)]);
  const answers = new Map(rows.map((row) => [row.key, row]));
  const unseen = asked.filter(({ key }) => !answers.has(key));
  if (unseen.length === 0) return answers;
  for (const row of await recallMany(tx, unseen)) answers.set(row.key, row);
  return answers;
}

/** What stands under the keys; locks nothing and writes nothing. */
async function recallMany(tx: Tx, asked: readonly Asked[]): Promise<KeyedAnswer[]> {
  const { rows } = await tx.query<KeyedAnswer>(
    foundMany('unnest($1::text[], $2::text[]) as asked (key, canonical)'),
    columnsOf(asked),
  );
  return rows;
}

function columnsOf(asked: readonly Asked[]): [keys: string[], requests: string[]] {
  return [asked.map(({ key }) => key), asked.map(({ request }) => request)];
}

/** The answer was given to the first of the key; any other of it is judged by the request that stands. */
function outcomeOf(asked: Asked, first: Asked, answer: Answer): ItemOutcome {
  if (asked === first && answer.differs === null) {
    return { kind: answer.won ? 'done' : 'duplicate', result: answer.result };
  }
  const stored = answer.differs ?? hashOf(first);
  const own = hashOf(asked);
  return own === stored ? { kind: 'duplicate', result: answer.result } : { kind: 'conflict', asked: own, stored };
}
