import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { REFUSED_BY_GUARDS } from './by-hand-guards.ts';
import { DONE_ACTION, insert, type Statement, storeLegalRows, typed } from './by-hand-rows.ts';
import { OPEN, OTHER_LINE, REFUSED_BY_SETTLEMENT } from './by-hand-settlement.ts';

const SECOND = { start_id: 'run-2' };
const THIRD_KEY = { key: 'settlement:2026-10', period: '2026-10' };
const LATER = { number: 2, pass: 3, fence: 3, outcome: 'done', ended_at: '2026-10-01T00:00:00Z' };
const ASKED = {
  id: 'a-2',
  subject: 'run-2',
  state: 'requested',
  decided_by: null,
  decided_at: null,
  executed_by: null,
  executed_at: null,
};
const APPROVED = { ...ASKED, state: 'approved', decided_by: 'os:bob', decided_at: '2026-10-01T00:00:00Z' };
const OTHER_PART = { ordinal: 2, period: '2026-10', start_id: 'a-1-2026-10' };
const OTHER_NUMBER = { number: 'settlement:2026-08:m-2:GBP:payout', subject: 'm-2' };

/** What a hand could try, and the constraint that refuses it. */
const REFUSED: readonly (readonly [string, Statement])[] = [
  ['job_pk', insert('onceper.job')],
  ['job_id_form', insert('onceper.job', { job: 'Settlement' })],
  ['job_active_rule_exists', typed(`update onceper.job set active_rule = 7; set constraints all immediate`)],
  ['rule_pk', insert('onceper.rule')],
  ['rule_version_counts_from_one', insert('onceper.rule', { version: 0 })],
  ['rule_immutable', typed(`update onceper.rule set body = '{"zone":"UTC"}'`)],
  ['one_off_pk', insert('onceper.one_off')],
  ['zone_table_pk', insert('onceper.zone_table')],
  ['zone_table_counts_from_one', insert('onceper.zone_table', { version: 2 })],
  ['zone_table_has_both', insert('onceper.zone_table', { job: 'other', aheads: '{}' })],
  ['zone_table_digest_form', insert('onceper.zone_table', { job: 'other', digest: 'abc' })],
  ['zone_table_append_only', typed(`update onceper.zone_table set zone = 'Europe/London'`)],
  ['schedule_pk', insert('onceper.schedule')],
  ['run_pk', insert('onceper.run')],
  ['run_slot_once', insert('onceper.run', SECOND)],
  ['run_repeats_a_run', insert('onceper.run', { ...SECOND, repeat_of: 'run-9' })],
  ['run_trigger_known', insert('onceper.run', { ...SECOND, repeat_of: 'run-1', trigger: 'cron' })],
  ['run_decision_known', insert('onceper.run', { ...SECOND, repeat_of: 'run-1', decision: 'maybe' })],
  ['run_without_key_owns_nothing', insert('onceper.run', { ...SECOND, repeat_of: 'run-1', key: null })],
  ['run_without_time_is_refused', insert('onceper.run', { ...SECOND, scheduled_at: null })],
  ['run_release_is_signed', insert('onceper.run', { ...SECOND, repeat_of: 'run-1', released_by: 'os:ann' })],
  ['action_pk', insert('onceper.action')],
  ['action_key_derives_from_period', insert('onceper.action', { key: 'settlement:2026-09:again' })],
  ['action_adj_is_a_number', insert('onceper.action', { key: 'settlement:2026-09:adj-01', adj: '01' })],
  ['action_period_form', insert('onceper.action', { key: 'settlement:2026-09:again', period: '2026-09:again' })],
  [
    'action_period_of_kind',
    insert('onceper.action', { key: 'settlement:2026-W40', period: '2026-W40', state: 'admitted' }),
  ],
  [
    'action_adj_delivers_nothing',
    insert('onceper.action', { ...DONE_ACTION, key: 'settlement:2026-08:adj-1', adj: '1', delivering: true }),
  ],
  ['action_state_known', insert('onceper.action', { ...THIRD_KEY, state: 'paid' })],
  ['action_fence_not_negative', insert('onceper.action', { ...THIRD_KEY, state: 'admitted', fence: -1 })],
  ['action_running_has_owner', insert('onceper.action', { ...THIRD_KEY, owner_exec: null })],
  ['action_done_has_result', typed(`update onceper.action set state = 'done' where state = 'running'`)],
  ['action_done_has_time', insert('onceper.action', { ...DONE_ACTION, ...THIRD_KEY, done_at: null })],
  ['action_skipped_has_reason', insert('onceper.action', { ...THIRD_KEY, state: 'skipped' })],
  ['action_delivers_when_done', insert('onceper.action', { ...THIRD_KEY, delivering: true })],
  ['action_rule_exists', insert('onceper.action', { ...THIRD_KEY, rule_version: 7 })],
  ['action_never_deleted', typed('delete from onceper.action')],
  ['action_fence_never_falls', typed(`update onceper.action set fence = 1 where fence = 2`)],
  ['action_result_immutable', typed(`update onceper.action set result = '{}' where state = 'done'`)],
  ['action_period_end_fixed', typed(`update onceper.action set period_ends = clock_timestamp() where state = 'done'`)],
  ['attempt_pk', insert('onceper.attempt', { ...LATER, number: 1 })],
  ['attempt_pass_once', insert('onceper.attempt', { ...LATER, pass: 2 })],
  ['attempt_fence_once', insert('onceper.attempt', { ...LATER, fence: 2 })],
  ['attempt_one_open', insert('onceper.attempt', { ...LATER, outcome: null, ended_at: null })],
  ['attempt_of_run', insert('onceper.attempt', { ...LATER, run: 'run-9' })],
  ['attempt_of_action', insert('onceper.attempt', { ...LATER, key: 'settlement:2026-10' })],
  ['attempt_outcome_known', insert('onceper.attempt', { ...LATER, outcome: 'paid' })],
  ['attempt_ends_with_outcome', insert('onceper.attempt', { ...LATER, ended_at: null })],
  ['attempt_failed_has_code', insert('onceper.attempt', { ...LATER, outcome: 'failed' })],
  ['slice_pk', insert('onceper.slice')],
  ['slice_of_action', insert('onceper.slice', { key: 'settlement:2026-10' })],
  ['slice_range_runs_forward', insert('onceper.slice', { slice: 2, first_subject: 'm-3' })],
  ['slice_done_has_result', insert('onceper.slice', { slice: 2, done_at: null })],
  ['outbox_pk', insert('onceper.outbox')],
  ['outbox_number_derives_from_key', insert('onceper.outbox', { number: 'settlement:2026-08:m-2:GBP:payout' })],
  ['outbox_state_known', insert('onceper.outbox', { ...OTHER_NUMBER, state: 'paid' })],
  ['outbox_sent_is_counted', insert('onceper.outbox', { ...OTHER_NUMBER, attempts: 0 })],
  ['outbox_succeeded_is_named', insert('onceper.outbox', { ...OTHER_NUMBER, state: 'succeeded' })],
  ['outbox_webhook_moves_no_money', insert('onceper.outbox', { ...OTHER_NUMBER, destination: 'webhook:accounting' })],
  [
    'outbox_waits_for_its_subject',
    insert('onceper.outbox', { ...OTHER_NUMBER, waits_for: 'settlement:2026-08:m-1:GBP:payout' }),
  ],
  ['outbox_frozen', typed(`update onceper.outbox set waits_for = number`)],
  ['outbox_frozen', typed(`update onceper.outbox set body = '{"amount":"1"}'`)],
  ['outbox_never_deleted', typed('delete from onceper.outbox')],
  ['delivery_pk', insert('onceper.delivery')],
  ['delivery_step_known', insert('onceper.delivery', { fence: 2, step: 'guess' })],
  ['webhook_pk', insert('onceper.webhook')],
  [
    'webhook_state_known',
    insert('onceper.webhook', { id: 'msg_2', state: 'paid', decided_at: '2026-10-01T00:00:00Z' }),
  ],
  ['webhook_decided_has_time', insert('onceper.webhook', { id: 'msg_2', state: 'applied' })],
  [
    'webhook_attention_has_code',
    insert('onceper.webhook', { id: 'msg_2', state: 'attention', decided_at: '2026-10-01T00:00:00Z' }),
  ],
  ['webhook_never_deleted', typed('delete from onceper.webhook')],
  ['webhook_frozen', typed(`update onceper.webhook set body = '{"type":"x"}'`)],
  ['outbox_act_pk', insert('onceper.outbox_act')],
  ['outbox_act_verb_known', insert('onceper.outbox_act', { fence: 9, verb: 'wish' })],
  ['outbox_act_is_signed', insert('onceper.outbox_act', { fence: 9, actor: '' })],
  ['outbox_act_append_only', typed('delete from onceper.outbox_act')],
  ['approval_pk', insert('onceper.approval', { ...ASKED, id: 'a-1' })],
  ['approval_kind_known', insert('onceper.approval', { ...ASKED, kind: 'wish' })],
  ['approval_state_known', insert('onceper.approval', { ...APPROVED, state: 'paid' })],
  ['approval_digest_form', insert('onceper.approval', { ...ASKED, digest: 'abc' })],
  ['approval_revision_counts_from_one', insert('onceper.approval', { ...ASKED, revision: 0 })],
  ['approval_actor_form', insert('onceper.approval', { ...APPROVED, decided_by: 'os:ANN' })],
  ['approval_is_signed', insert('onceper.approval', { ...ASKED, reason: '' })],
  ['approval_decision_is_signed', insert('onceper.approval', { ...APPROVED, decided_at: null })],
  ['approval_decided_by_someone', insert('onceper.approval', { ...ASKED, state: 'approved' })],
  ['approval_requested_is_undecided', insert('onceper.approval', { ...APPROVED, state: 'requested' })],
  ['approval_approver_is_not_asker', insert('onceper.approval', { ...APPROVED, decided_by: 'os:ann' })],
  ['approval_approver_is_not_asker', insert('onceper.approval', { ...APPROVED, edited_by: 'os:bob' })],
  ['approval_decided_in_time', insert('onceper.approval', { ...APPROVED, decided_at: '2026-10-09T00:00:00Z' })],
  ['approval_executed_is_signed', insert('onceper.approval', { ...APPROVED, state: 'executed' })],
  [
    'approval_executed_in_time',
    insert('onceper.approval', { id: 'a-2', subject: 'run-2', executed_at: '2026-10-09T00:00:00Z' }),
  ],
  ['approval_stale_has_reason', insert('onceper.approval', { ...APPROVED, state: 'stale' })],
  [
    'approval_one_open',
    typed(`insert into onceper.approval (id, kind, subject, job, ask, reason, plan, digest, requested_by, edited_by, expires_at)
           select n, 'skip', 'settlement:2026-09', 'settlement', '{}', 'no trade', '{}', repeat('0', 64), 'os:ann', 'os:ann',
                  clock_timestamp() + interval '1 day' from unnest(array['a-3', 'a-4']) n`),
  ],
  ['approval_never_deleted', typed('delete from onceper.approval')],
  ['approval_final', typed(`update onceper.approval set state = 'requested' where state = 'executed'`)],
  ['approval_frozen', typed(`update onceper.approval set requested_by = 'os:eve' where state = 'requested'`)],
  ['approval_edit_voids', typed(`update onceper.approval set plan = '{"periods":[]}' where state = 'requested'`)],
  [
    'approval_goes_forward',
    typed(`update onceper.approval set state = 'stale', stale_reason = 'x', decided_by = 'os:bob', decided_at = clock_timestamp()
            where state = 'requested'`),
  ],
  ['intent_pk', insert('onceper.intent')],
  ['intent_of_job', insert('onceper.intent', { start_id: 'start-2', job: 'nobody' })],
  ['intent_actor_form', insert('onceper.intent', { start_id: 'start-2', actor: 'user:Ann' })],
  ['intent_overrides_are_texts', insert('onceper.intent', { start_id: 'start-2', overrides: '[]' })],
  ['intent_append_only', typed(`update onceper.intent set actor = 'user:bob'`)],
  ['waiver_pk', insert('onceper.waiver')],
  ['waiver_of_approval', insert('onceper.waiver', { code: 'empty', approval: 'a-9' })],
  ['waiver_append_only', typed('update onceper.waiver set fence = 1')],
  ['waiver_needs_execution', insert('onceper.waiver', { code: 'empty', approval: 'a-open' })],
  ['backfill_pk', insert('onceper.backfill')],
  ['backfill_of_approval', insert('onceper.backfill', { id: 'a-9' })],
  ['backfill_is_bounded', insert('onceper.backfill', { id: 'a-open', most_active: 0 })],
  ['backfill_cancel_is_signed', insert('onceper.backfill', { id: 'a-open', cancelled_by: 'os:bob' })],
  ['backfill_period_pk', insert('onceper.backfill_period', { ...OTHER_PART, ordinal: 1 })],
  ['backfill_period_once', insert('onceper.backfill_period', { ...OTHER_PART, period: '2026-09' })],
  ['backfill_period_one_run', insert('onceper.backfill_period', { ...OTHER_PART, start_id: 'a-1-2026-09' })],
  [
    'backfill_period_of_backfill',
    insert('onceper.backfill_period', { ...OTHER_PART, backfill: 'a-9', start_id: 'a-9-1' }),
  ],
  ['backfill_period_act_known', insert('onceper.backfill_period', { ...OTHER_PART, act: 'pay' })],
  ['backfill_period_state_known', insert('onceper.backfill_period', { ...OTHER_PART, state: 'paid' })],
  ['backfill_period_left_is_not_run', insert('onceper.backfill_period', { ...OTHER_PART, state: 'left' })],
  ['backfill_period_started_has_time', insert('onceper.backfill_period', { ...OTHER_PART, state: 'started' })],
  [
    'backfill_period_ended_has_outcome',
    insert('onceper.backfill_period', { ...OTHER_PART, state: 'ended', started_at: '2026-10-01T00:00:00Z' }),
  ],
  ['delivery_append_only', typed(`update onceper.delivery set outcome = 'accepted'`)],
  ['destination_pk', typed(`insert into onceper.destination (name) values ('accounts')`)],
  ['destination_state_known', typed(`update onceper.destination set state = 'closed'`)],
  ['destination_paused_has_cause', typed(`update onceper.destination set state = 'paused'`)],
  [
    'destination_code_form',
    typed(`update onceper.destination set state = 'paused', code = 'no money', status = 402, probe_at = since`),
  ],
  ['destination_probes_not_negative', typed(`update onceper.destination set probes = -1`)],
  ['epoch_pk', typed('insert into onceper.epoch default values')],
  ['epoch_one_row', typed('insert into onceper.epoch (one) values (false)')],
  ['epoch_never_falls', typed('update onceper.epoch set epoch = -1')],
  ['epoch_freeze_has_reason', typed('update onceper.epoch set frozen_at = clock_timestamp()')],
  ['epoch_kept', typed('delete from onceper.epoch')],
  // What the chain's trigger decides is tried as by a hand that has put the triggers out.
  [
    'audit_pk',
    typed(`set local session_replication_role = replica; insert into onceper.audit select * from onceper.audit`),
  ],
  ['audit_actor_form', insert('onceper.audit', { actor: 'os:Ann' })],
  ['audit_verb_form', insert('onceper.audit', { verb: 'Release it' })],
  ['audit_detail_is_object', insert('onceper.audit', { detail: '[]' })],
  ['audit_append_only', typed(`update onceper.audit set actor = 'os:bob'`)],
  ['audit_append_only', typed('delete from onceper.audit')],
  ['audit_never_truncated', typed('truncate onceper.audit')],
  ['audit_head_pk', typed(`insert into onceper.audit_head (seq, hash) values (0, '')`)],
  ['audit_head_one_row', typed(`insert into onceper.audit_head (one, seq, hash) values (false, 0, '')`)],
  ['audit_head_goes_forward', typed('update onceper.audit_head set seq = 0')],
  ['audit_head_kept', typed('delete from onceper.audit_head')],
  ['audit_head_never_truncated', typed('truncate onceper.audit_head')],
  ['item_pk', insert('onceper.item')],
  ['item_key_form', insert('onceper.item', { key: '' })],
  ['item_request_hash_form', insert('onceper.item', { key: 'b', request_hash: '\\x00' })],
  ['item_append_only', typed(`update onceper.item set result = '{}'`)],
  ['item_never_truncated', typed('truncate onceper.item')],
  ['item_result_pk', insert('onceper.item_result')],
  ['item_result_append_only', typed('delete from onceper.item_result')],
  ['item_result_never_truncated', typed('truncate onceper.item_result')],
  ...REFUSED_BY_SETTLEMENT,
  ...REFUSED_BY_GUARDS,
];

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'by hand', max: 2 });
  await transaction(db, {}, async (tx) => {
    await storeLegalRows(tx);
    const open = insert('onceper.approval', { ...ASKED, id: 'a-open', subject: 'run-9' });
    await tx.query(open.text, open.values);
    const waits = {
      ...APPROVED,
      id: 'a-approved',
      subject: 'run-8',
      decided_at: '2030-10-01T00:00:00Z',
      expires_at: '2099-01-01T00:00:00Z',
    };
    const approved = insert('onceper.approval', waits);
    await tx.query(approved.text, approved.values);
  });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** Runs a statement in a transaction that is never committed; the constraint that refused it, or null. */
async function refusedBy({ text, values }: Statement): Promise<string | null> {
  const stop = new Error('not refused');
  const tried = transaction(db, {}, async (tx) => {
    await (values.length === 0 ? tx.query(text) : tx.query(text, values));
    throw stop;
  });
  return tried.catch((error: unknown) => {
    if (error === stop) return null;
    if (error instanceof Error && 'at' in error && typeof error.at === 'string') return error.at;
    throw error;
  });
}

test.each(REFUSED)('%s refuses what a hand could type', async (constraint, statement) => {
  expect(await refusedBy(statement)).toBe(constraint);
});

test('a statement that breaks nothing is not refused', async () => {
  expect(await refusedBy(insert('onceper.run', { ...SECOND, repeat_of: 'run-1' }))).toBeNull();
  expect(await refusedBy(insert('settlement.line', OTHER_LINE))).toBeNull();
  expect(await refusedBy(insert('settlement.period', OPEN))).toBeNull();
});

/** Primary, unique, foreign and check constraints, unique indexes, and the names that triggers refuse under. */
async function everyConstraint(): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `select conname as name from pg_constraint
      where contype in ('p', 'u', 'f', 'c') and connamespace in ('onceper'::regnamespace, 'settlement'::regnamespace)
      union
     select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
      where i.indisunique and c.relnamespace in ('onceper'::regnamespace, 'settlement'::regnamespace)`,
  );
  const folder = join(import.meta.dirname, '../../migrations');
  const sql = readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
  const raised = sql.flatMap((text) => [...text.matchAll(/constraint = '(\w+)'|refuse_change\('(\w+)'\)/g)]);
  return [...rows.map((row) => row.name), ...raised.map(([, one, other]) => one ?? other ?? '')];
}

test('every constraint of both schemas is tried here', async () => {
  const every = [...new Set(await everyConstraint())].sort();
  expect(every.length).toBeGreaterThan(80);
  expect([...new Set(REFUSED.map(([constraint]) => constraint))].sort()).toEqual(every);
});
