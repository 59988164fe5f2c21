import type { Tx } from '../kernel/sql.ts';

/** True when a run of the key was ever opened; every action was admitted for one. */
export async function hasRunOfKey(tx: Tx, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(`select from onceper.run where key = $1 limit 1`, [key]);
  return rowCount > 0;
}

/** The known keys beside a text in the order of the index, two before it and two after: what a slip of the pen was about. */
export async function keysNear(tx: Tx, text: string): Promise<string[]> {
  const { rows } = await tx.query<{ key: string }>(
    `select key from (
       (select distinct key from onceper.run where key < $1 order by key desc limit 2)
       union all
       (select distinct key from onceper.run where key > $1 order by key limit 2)) near
      order by key`,
    [text],
  );
  return rows.map((row) => row.key);
}
