import type { Tx } from '../kernel/sql.ts';

/** A lock that ends by itself after a while, as `SET NX PX` makes one. Nothing that is written under it names it: no fence. */
export interface ExpiringLock {
  readonly name: string;
  /** Takes the lock for `forMs` where nobody has it, or whoever had it has run out of time; `name` where there is more than one. */
  take(holder: string, forMs: number, name?: string): Promise<boolean>;
  isHeldBy(holder: string): Promise<boolean>;
  /** Gives it back, where it is still the holder's. */
  giveBack(holder: string): Promise<void>;
  close(): Promise<void>;
}

/** The protocol of `SET NX PX` on a row of PostgreSQL, by the database's clock. */
export async function createRowLock(tx: Tx): Promise<ExpiringLock> {
  await tx.query(
    'create table if not exists public.expiring_lock (name text primary key, holder text not null, until timestamptz not null)',
  );
  return {
    name: 'a row of PostgreSQL with the protocol of SET NX PX',
    async take(holder, forMs, name = 'payday') {
      const { rowCount } = await tx.query(
        `insert into public.expiring_lock as l (name, holder, until)
         values ($3, $1, clock_timestamp() + $2 * interval '1 millisecond')
             on conflict (name) do update set holder = excluded.holder, until = excluded.until
          where l.until <= clock_timestamp()`,
        [holder, forMs, name],
      );
      return rowCount === 1;
    },
    async isHeldBy(holder) {
      const { rowCount } = await tx.query(
        'select from public.expiring_lock where holder = $1 and until > clock_timestamp()',
        [holder],
      );
      return rowCount === 1;
    },
    async giveBack(holder) {
      await tx.query('delete from public.expiring_lock where holder = $1', [holder]);
    },
    close: () => Promise.resolve(),
  };
}
