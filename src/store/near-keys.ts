import type { Tx } from '../kernel/sql.ts';

/** True when the key has an action, or a run of it was ever opened. A skipped period has the one without the other. */
export async function isKnownKey(tx: Tx, key: string): Promise<boolean> {
  const { rows } = await tx.query<{ known: boolean }>(
    `select exists (select from onceper.action where key = $1)
         or exists (select from onceper.run where key = $1) as known`,
    [key],
  );
  return rows[0]?.known ?? false;
}

/** The known keys beside a text in the order of the indexes, two before it and two after: what a slip of the pen was about. */
export async function keysNear(tx: Tx, text: string): Promise<string[]> {
  const { rows } = await tx.query<{ key: string }>(
    `with before as (
       (select key from onceper.action where key < $1 order by key desc limit 2)
       union
       (select distinct key from onceper.run where key < $1 order by key desc limit 2)
     ), after as (
       (select key from onceper.action where key > $1 order by key limit 2)
       union
       (select distinct key from onceper.run where key > $1 order by key limit 2)
     )
     select key from (
       (select key from before order by key desc limit 2) union all (select key from after order by key limit 2)) near
      order by key`,
    [text],
  );
  return rows.map((row) => row.key);
}
