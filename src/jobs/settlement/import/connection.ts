import type pg from 'pg';
import { isRolledBack } from '../../../kernel/commit-answer.ts';
import { codeOf, OnceperError } from '../../../kernel/error.ts';
import type { Tx } from '../../../kernel/sql.ts';

/** What became of work in a transaction: its value, and whether what it wrote is to stay. */
export interface Outcome<T> {
  readonly keep: boolean;
  readonly value: T;
}

/** Checks a connection out for `work` and gives it back; one that is not usable any more is destroyed. */
export async function onConnection<T>(
  connect: () => Promise<pg.PoolClient>,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect();
  let broken = false;
  // A lost connection is told by the query under way; without a listener it would end the process as well.
  const lost = () => {
    broken = true;
  };
  client.on('error', lost);
  try {
    return await work(client);
  } finally {
    client.off('error', lost);
    client.release(broken);
  }
}

/** Runs `work` in a READ COMMITTED transaction that ends by its outcome, or is rolled back when it throws. */
export async function inTransaction<T>(client: pg.PoolClient, work: (tx: Tx) => Promise<Outcome<T>>): Promise<T> {
  await client.query('begin isolation level read committed');
  try {
    const { keep, value } = await work(txOf(client));
    if (keep) await commit(client);
    else await client.query('rollback');
    return value;
  } catch (error) {
    // On a connection that is gone the server has rolled back already; the first error is the one that tells.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

async function commit(client: pg.PoolClient): Promise<void> {
  try {
    const { command } = await client.query('commit');
    if (command !== 'COMMIT') throw new Error(`the server answered COMMIT with ${command}`);
  } catch (error) {
    if (isRolledBack(codeOf(error))) throw error;
    throw new OnceperError({
      code: 'commit_unknown',
      message: 'the answer to COMMIT was lost: the file may or may not be stored',
      remedy: 'import the same file again: what is stored is recognised and adds nothing',
      cause: error,
    });
  }
}

function txOf(client: pg.PoolClient): Tx {
  return {
    async query<Row>(text: string, values?: readonly unknown[]) {
      const { rows, rowCount } = await client.query(text, values === undefined ? undefined : [...values]);
      return { rows: rows as Row[], rowCount: rowCount ?? 0 };
    },
  };
}
