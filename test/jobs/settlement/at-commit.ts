import type pg from 'pg';

/**
 * A client whose second commit, the one of an import's rows (the first is that of the period rows), is handed to `instead`
 * with the real commit: a place to stop at or to lose an answer, in an otherwise untouched import.
 */
export function atCommitOfRows(
  client: pg.PoolClient,
  instead: (commit: () => Promise<unknown>) => Promise<unknown>,
): pg.PoolClient {
  let commits = 0;
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...values: unknown[]): unknown => {
        if (name === 'query' && values[0] === 'commit') commits += 1;
        const isOfRows = name === 'query' && values[0] === 'commit' && commits === 2;
        return isOfRows ? instead(() => client.query('commit')) : Reflect.apply(value, target, values);
      };
    },
  });
}
