import { DONE_ACTION, insert, type Statement, typed } from './by-hand-rows.ts';

/** The next statements are those of a login that has verified nobody: the worker's. */
const AS_WORKER = `do $$ begin
    if not exists (select from pg_roles where rolname = 'by_hand_worker') then create role by_hand_worker in role onceper_worker; end if;
    if not exists (select from pg_roles where rolname = 'by_hand_server') then create role by_hand_server in role onceper_server; end if;
  end $$; set session authorization by_hand_worker;`;
const AS_SERVER = AS_WORKER.replace('authorization by_hand_worker', 'authorization by_hand_server');

/** A token with these claims that nobody has signed: the database reads it, and the audit checks who signed it. */
const token = (claims: Readonly<Record<string, unknown>>) =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
const LATE = 4_000_000_000;
const proof = (text: string, actor = 'user:eve') =>
  typed(
    `insert into onceper.decision_proof (approval, revision, verb, actor, token) values ('a-open', 1, 'approve', '${actor}', '${text}')`,
  );

const EFFECT = {
  number: 'settlement:2026-09:m-9:GBP:payout',
  key: 'settlement:2026-09',
  subject: 'm-9',
  attempts: 0,
  first_sent_at: null,
};

/** What a hand could try past those who may write, and the guard that refuses it. */
export const REFUSED_BY_GUARDS: readonly (readonly [string, Statement])[] = [
  ['transition_pk', typed('insert into onceper.transition select * from onceper.transition')],
  ['transition_moves', typed(`insert into onceper.transition values ('effect', 'pending', 'pending')`)],
  ['transition_append_only', typed(`delete from onceper.transition`)],
  [
    'transition_known',
    typed(`update onceper.outbox set state = 'pending_external'; update onceper.outbox set state = 'pending'`),
  ],
  ['transition_known', typed(`update onceper.action set state = 'admitted' where state = 'running'`)],
  ['transition_known', typed(`update onceper.run set decision = 'held', code = 'late'`)],
  [
    'transition_known',
    typed(
      `update onceper.attempt set outcome = 'done', ended_at = clock_timestamp(); update onceper.attempt set outcome = null, ended_at = null`,
    ),
  ],
  ['transition_birth', insert('onceper.outbox', EFFECT)],
  ['transition_birth', insert('onceper.outbox', { ...EFFECT, state: 'dead' })],
  ['transition_birth', insert('onceper.approval', { id: 'a-2', subject: 'run-2' })],
  ['transition_birth', insert('onceper.action', { key: 'settlement:2026-10', period: '2026-10' })],
  [
    'transition_birth',
    typed(`insert into settlement.period (period, starts_on, ends_on, starts, ends, state, sealed_by_fence)
     values ('2027-01', '2027-01-01', '2027-02-01', '2027-01-01Z', '2027-02-01Z', 'sealed', 1)`),
  ],
  ['outbox_in_its_slice', insert('onceper.outbox', { ...EFFECT, state: 'pending' })],
  ['slice_finished_once', typed(`update onceper.slice set result = '{"paid":1}'`)],
  [
    'slice_finished_under_fence',
    typed(`insert into onceper.slice (key, slice, first_subject, last_subject) values ('settlement:2026-09', 9, 'a', 'b');
           update onceper.slice set fence = 1, done_at = clock_timestamp() where slice = 9`),
  ],
  ['slice_before_the_end', insert('onceper.slice', { key: DONE_ACTION.key })],
  ['action_done_at_fixed', typed(`update onceper.action set done_at = clock_timestamp() where state = 'done'`)],
  [
    'action_made_done_is_adjustment',
    insert('onceper.action', { ...DONE_ACTION, key: 'settlement:2026-08:adj-1', adj: '1' }),
  ],
  ['decision_proof_pk', insert('onceper.decision_proof')],
  ['decision_proof_of_approval', insert('onceper.decision_proof', { approval: 'a-9' })],
  ['decision_proof_verb_known', insert('onceper.decision_proof', { verb: 'wish' })],
  [
    'decision_proof_has_one',
    typed(
      `${AS_SERVER} insert into onceper.decision_proof (approval, revision, verb, actor) values ('a-open', 1, 'approve', 'user:eve')`,
    ),
  ],
  ['decision_proof_bounded', proof(token({ sub: 'eve', exp: LATE, more: 'x'.repeat(16_000) }))],
  ['decision_proof_append_only', typed('update onceper.decision_proof set token = null')],
  ['decision_proof_never_truncated', typed('truncate onceper.decision_proof')],
  ['decision_proof_is_token', proof('eve')],
  ['decision_proof_is_token', proof('e30.bm8.c2ln')],
  ['decision_proof_is_token', proof(token({ sub: 'eve' }))],
  ['decision_proof_of_its_actor', proof(token({ sub: 'bob', exp: LATE }))],
  ['decision_proof_in_time', proof(token({ sub: 'eve', exp: 1 }))],
  [
    'approval_decision_is_proven',
    typed(
      `${AS_SERVER} update onceper.approval set state = 'rejected', decided_by = 'user:eve', decided_at = clock_timestamp() where id = 'a-open'`,
    ),
  ],
  [
    'approval_decision_stands',
    typed(
      `update onceper.approval set state = 'stale', stale_reason = 'x', decided_by = 'user:eve' where id = 'a-approved'`,
    ),
  ],
  ['approval_expires_in_time', typed(`update onceper.approval set state = 'expired' where id = 'a-approved'`)],
  [
    'approval_asked_by_the_logins',
    typed(`${AS_WORKER} insert into onceper.approval (id, kind, subject, job, ask, reason, plan, digest, requested_by, edited_by, expires_at)
     values ('a-5', 'skip', 'settlement:2026-09', 'settlement', '{}', 'no trade', '{}', repeat('0', 64), 'user:ann', 'user:ann', clock_timestamp() + interval '1 day')`),
  ],
  [
    'audit_actor_is_the_logins',
    typed(`${AS_WORKER} insert into onceper.audit (actor, verb, detail) values ('user:ann', 'approve', '{}')`),
  ],
  [
    'epoch_thawed_for_a_person',
    typed(
      `update onceper.epoch set frozen_at = clock_timestamp(), frozen_reason = 'x'; ${AS_WORKER} update onceper.epoch set frozen_at = null, frozen_reason = null`,
    ),
  ],
];
