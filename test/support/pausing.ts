import type pg from 'pg';
import type { Database } from '../../src/store/database.ts';

/** What befalls the next transactions of a database, each thing once: real connections, held up or cut at a known moment. */
export interface Mishaps {
  /** Runs before the next transaction gets its connection. */
  beforeTransaction: (() => Promise<void>) | null;
  /** The next COMMIT is carried out and its answer lost. */
  losesCommitAnswer: boolean;
}

/** The same database, with mishaps in the way of its transactions; single statements pass as they are. */
export function withMishaps(db: Database, mishaps: Mishaps): Database {
  const connect = async () => {
    const before = mishaps.beforeTransaction;
    mishaps.beforeTransaction = null;
    await before?.();
    return losingCommit(await db.pool.connect(), mishaps);
  };
  const pool = new Proxy(db.pool, {
    get: (target, name) => (name === 'connect' ? connect : boundTo(target, name)),
  });
  return { ...db, pool };
}

function losingCommit(client: pg.PoolClient, mishaps: Mishaps): pg.PoolClient {
  const query = async (text: string, values?: unknown[]) => {
    const answer = await client.query(text, values);
    if (text !== 'commit' || !mishaps.losesCommitAnswer) return answer;
    mishaps.losesCommitAnswer = false;
    throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
  };
  return new Proxy(client, {
    get: (target, name) => (name === 'query' ? query : boundTo(target, name)),
  });
}

function boundTo(target: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(target, name, target);
  return typeof value === 'function' ? value.bind(target) : value;
}
