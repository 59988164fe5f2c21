import type { Tx } from '../kernel/sql.ts';

/** Where a cleaner stands: the delivery behind which its next page begins. */
export interface CleanPlace {
  readonly number: string;
  readonly fence: bigint;
  readonly step: string;
}

/** One bounded step of a cleaner; `next` is null when it has walked the whole table. */
export interface CleanedPage {
  readonly deleted: number;
  readonly next: CleanPlace | null;
}

/** Lets one cleaner work at a time, until this transaction ends; false where another one does. */
export async function lockCleaning(tx: Tx): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>(
    `select pg_try_advisory_xact_lock(hashtextextended('onceper:clean', 0)) as locked`,
  );
  return rows[0]?.locked === true;
}

/** Says for this transaction that deliveries of finished effects are deleted on purpose; the table refuses it otherwise. */
export async function permitCleaning(tx: Tx): Promise<void> {
  await tx.query(`select set_config('onceper.cleaning', 'on', true)`);
}

/**
 * Deletes, of at most `limit` deliveries behind `after`, those older than `olderMs` whose effect has been finished for as
 * long. Effects themselves, by which a duplicate is recognised, are never touched.
 */
export async function cleanDeliveries(
  tx: Tx,
  page: { readonly after: CleanPlace | null; readonly olderMs: number; readonly limit: number },
): Promise<CleanedPage> {
  const { after } = page;
  const { rows } = await tx.query<{ deleted: number; looked: number } & CleanPlace>(
    `with page as materialized (
       select number, fence, step, at from onceper.delivery
        where (number, fence, step) > ($1, $2, $3)
        order by number, fence, step limit $5
     ), gone as (
       delete from onceper.delivery d using page p, onceper.outbox o
        where d.number = p.number and d.fence = p.fence and d.step = p.step and o.number = p.number
          and o.state in ('succeeded', 'failed', 'returned')
          and o.final_at < clock_timestamp() - $4 * interval '1 millisecond'
          and p.at < clock_timestamp() - $4 * interval '1 millisecond'
       returning d.number
     )
     select (select count(*)::int4 from gone) as deleted, (select count(*)::int4 from page) as looked, number, fence, step
       from page order by number desc, fence desc, step desc limit 1`,
    [after?.number ?? '', after?.fence ?? 0n, after?.step ?? '', page.olderMs, page.limit],
  );
  const [last] = rows;
  if (last === undefined) return { deleted: 0, next: null };
  const { deleted, looked, number, fence, step } = last;
  return { deleted, next: looked < page.limit ? null : { number, fence, step } };
}
