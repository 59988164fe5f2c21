import type { Tx } from '../../src/kernel/sql.ts';
import { PAST_GUARDS } from './forced.ts';

/**
 * What an executed approval leaves behind for a held run, without the asking and deciding, in one statement: a waiver of what it
 * is held for, under the fence that its key has now. False for a run that is not held.
 */
export async function waive(tx: Tx, startId: string): Promise<boolean> {
  const { rows } = await tx.query<{ signed: number }>(
    `with ${PAST_GUARDS}, held as (
       select r.start_id, r.job_id, r.key, r.code, coalesce(a.fence, 0) as fence
         from onceper.run r left join onceper.action a on a.key = r.key
        where r.start_id = $1 and r.decision = 'held'
     ), approved as (
       insert into onceper.approval
         (id, kind, subject, job, key, ask, reason, plan, digest, state, requested_by, edited_by, expires_at,
          decided_by, decided_at, executed_by, executed_at)
       select gen_random_uuid()::text, 'held_run', start_id, job_id, key, '{}', 'seen', '{}', repeat('0', 64), 'executed',
              'os:ann', 'os:ann', clock_timestamp() + interval '1 day', 'os:bob', clock_timestamp(), 'os:bob', clock_timestamp()
         from past, held
       returning id, subject
     ), given as (
       insert into onceper.waiver (run, code, fence, approval)
       select start_id, code, fence, id from held join approved on subject = start_id
       on conflict on constraint waiver_pk do nothing
     ), signed as (
       update onceper.run set released_by = 'os:bob', released_at = clock_timestamp(), release_reason = 'seen'
        where start_id in (select start_id from held)
       returning start_id
     )
     select count(*)::int4 as signed from signed`,
    [startId],
  );
  return rows[0]?.signed === 1;
}
