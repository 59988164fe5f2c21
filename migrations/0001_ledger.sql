-- Purpose: schema onceper, the ledger that every start path must pass (ARCHITECTURE.md, "The ledger").
-- Lock cost: creates only; takes no lock on anything that exists.

create schema onceper;

-- One job: which rule version is active. Its row is made when the job's first rule is loaded.
create table onceper.job (
  job text not null,
  active_rule integer not null,
  created_at timestamptz not null default clock_timestamp(),
  constraint job_pk primary key (job),
  constraint job_id_form check (job ~ '^[a-z][a-z0-9-]*$')
);

create table onceper.rule (
  job text not null,
  version integer not null,
  body jsonb not null,
  loaded_by text not null,
  loaded_at timestamptz not null default clock_timestamp(),
  constraint rule_pk primary key (job, version),
  constraint rule_version_counts_from_one check (version >= 1)
);

alter table onceper.job add constraint job_active_rule_exists foreign key (job, active_rule)
  references onceper.rule (job, version) deferrable initially deferred;

create function onceper.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '%.% is append only: % refused', tg_table_schema, tg_table_name, tg_op
    using errcode = 'restrict_violation', constraint = tg_argv[0];
end $$;

create trigger rule_immutable before update or delete on onceper.rule
  for each row execute function onceper.refuse_change('rule_immutable');

-- A one-off instant of a job's schedule, beside its calendar (the demo's own run; an operator's announced extra date).
create table onceper.one_off (
  job text not null,
  at timestamptz not null,
  reason text not null,
  actor text not null,
  stored_at timestamptz not null default clock_timestamp(),
  constraint one_off_pk primary key (job, at)
);

-- One planned run. start_id is the run's id. No foreign key to action: a refused run has none, and the key share lock
-- that it takes would wait for a takeover.
create table onceper.run (
  start_id text not null,
  job_id text not null,
  scheduled_at timestamptz,
  repeat_of text,
  trigger text not null,
  actor text not null,
  period text,
  key text,
  overrides jsonb not null default '{}',
  decision text not null,
  code text,
  reason text,
  asked integer not null default 1,
  opened_at timestamptz not null default clock_timestamp(),
  decided_at timestamptz not null default clock_timestamp(),
  released_by text,
  released_at timestamptz,
  release_reason text,
  constraint run_pk primary key (start_id),
  constraint run_repeats_a_run foreign key (repeat_of) references onceper.run (start_id),
  constraint run_trigger_known check (trigger in ('schedule', 'manual', 'backfill')),
  constraint run_decision_known check (decision in
    ('refused', 'conflict', 'duplicate', 'in_progress', 'held', 'deferred', 'admitted')),
  constraint run_without_key_is_refused check (key is not null or decision = 'refused'),
  constraint run_without_time_is_refused check (scheduled_at is not null or decision = 'refused'),
  constraint run_release_is_signed check (
    (released_at is null) = (released_by is null) and (released_at is null) = (release_reason is null))
);

create unique index run_slot_once on onceper.run (job_id, scheduled_at) where repeat_of is null;
create index run_by_key on onceper.run (key, opened_at) where key is not null;

-- The ledger row of a business key. No unique index may cover a column that claim or renew writes: it would make it a key
-- column, and the fence's update would wait for slices in flight (measured: 151 ms against 0).
create table onceper.action (
  key text not null,
  job text not null,
  period text not null,
  adj text,
  state text not null,
  fence bigint not null default 0,
  owner_run text not null,
  owner_exec text,
  owner_pass integer,
  lease_until timestamptz not null,
  fingerprint text not null,
  overrides jsonb not null,
  rule_version integer not null,
  release text not null,
  budget_from bigint not null default 0,
  delivering boolean not null default false,
  result jsonb,
  admitted_at timestamptz not null default clock_timestamp(),
  sealed_at timestamptz,
  done_at timestamptz,
  skipped_reason text,
  constraint action_pk primary key (key),
  constraint action_key_derives_from_period check (key = job || ':' || period || coalesce(':adj-' || adj, '')),
  constraint action_adj_is_a_number check (adj ~ '^[1-9][0-9]*$'),
  constraint action_state_known check (state in
    ('admitted', 'running', 'failed', 'exhausted', 'cancelled', 'skipped', 'done', 'compensating', 'compensated')),
  constraint action_fence_not_negative check (fence >= 0),
  constraint action_running_has_owner check (state <> 'running' or (fence > 0 and owner_exec is not null and owner_pass is not null)),
  constraint action_done_has_result check ((state in ('done', 'compensating', 'compensated')) = (result is not null)),
  constraint action_done_has_time check ((result is null) = (done_at is null)),
  constraint action_skipped_has_reason check ((state = 'skipped') = (skipped_reason is not null)),
  constraint action_delivers_when_done check (not delivering or result is not null),
  constraint action_rule_exists foreign key (job, rule_version) references onceper.rule (job, version)
);

create index action_delivering on onceper.action (key) where delivering;
create index action_by_period on onceper.action (job, period);

create function onceper.guard_action() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'action % is never deleted to run again', old.key
      using errcode = 'restrict_violation', constraint = 'action_never_deleted';
  end if;
  if new.fence < old.fence then
    raise exception 'action %: fence may not fall from % to %', old.key, old.fence, new.fence
      using errcode = 'check_violation', constraint = 'action_fence_never_falls';
  end if;
  if old.result is not null and new.result is distinct from old.result then
    raise exception 'action %: a stored result is never rewritten', old.key
      using errcode = 'check_violation', constraint = 'action_result_immutable';
  end if;
  return new;
end $$;

create trigger action_guard before update or delete on onceper.action
  for each row execute function onceper.guard_action();

-- One pass claim → perform → close of an admitted run.
create table onceper.attempt (
  run text not null,
  number integer not null,
  key text not null,
  execution text not null,
  pass integer not null,
  fence bigint not null,
  release text not null,
  started_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  outcome text,
  code text,
  detail text,
  slices_begun integer not null default 0,
  slices_finished integer not null default 0,
  constraint attempt_pk primary key (run, number),
  constraint attempt_pass_once unique (run, execution, pass),
  constraint attempt_fence_once unique (key, fence),
  constraint attempt_of_run foreign key (run) references onceper.run (start_id),
  constraint attempt_of_action foreign key (key) references onceper.action (key),
  constraint attempt_outcome_known check (outcome in
    ('done', 'failed', 'worker_lost', 'shutdown', 'lease_lost', 'lease_expired', 'superseded', 'cancelled')),
  constraint attempt_ends_with_outcome check ((outcome is null) = (ended_at is null)),
  constraint attempt_failed_has_code check (outcome is distinct from 'failed' or code is not null)
);

create unique index attempt_one_open on onceper.attempt (key) where outcome is null;

-- A range of subject ids of one action, performed in one transaction: first_subject inclusive, last_subject inclusive.
create table onceper.slice (
  key text not null,
  slice integer not null,
  first_subject text collate "C" not null,
  last_subject text collate "C" not null,
  fence bigint,
  done_at timestamptz,
  result jsonb,
  constraint slice_pk primary key (key, slice),
  constraint slice_of_action foreign key (key) references onceper.action (key),
  constraint slice_range_runs_forward check (first_subject <= last_subject),
  constraint slice_done_has_result check ((done_at is null) = (fence is null) and (done_at is not null or result is null))
);

-- One effect. No foreign key to action: it would double the cost of the insert, wait for takeovers and fence nothing.
create table onceper.outbox (
  number text collate "C" not null,
  key text not null,
  subject text not null,
  effect text not null,
  destination text not null,
  body text not null,
  written_by_fence bigint not null,
  state text not null default 'pending',
  fence bigint not null default 0,
  attempts integer not null default 0,
  lookups integer not null default 0,
  first_sent_at timestamptz,
  last_sent_at timestamptz,
  due_at timestamptz not null default clock_timestamp(),
  counterparty_id text,
  code text,
  final_at timestamptz,
  constraint outbox_pk primary key (number),
  constraint outbox_number_derives_from_key check (starts_with(number, key || ':' || subject || ':')),
  constraint outbox_state_known check (state in ('pending', 'sending', 'unknown', 'pending_external', 'succeeded', 'failed',
    'returned', 'needs_attention', 'dead')),
  constraint outbox_sent_is_counted check ((attempts = 0) = (first_sent_at is null)),
  constraint outbox_succeeded_is_named check (state not in ('succeeded', 'returned') or counterparty_id is not null)
);

-- What the relay takes: by key, then by due time. With a plain index on (due_at) beside it the planner walks undelivered
-- rows of unfinished actions (264 ms against 7 ms a take), so there is this one only. A key's effects in the order of their
-- numbers are a range of the primary key: every take and record would pay for an index of their own.
create index outbox_due on onceper.outbox (key, due_at)
  where state in ('pending', 'sending', 'unknown', 'pending_external');

create function onceper.guard_outbox() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'effect % is never deleted: its number must stay recognisable', old.number
      using errcode = 'restrict_violation', constraint = 'outbox_never_deleted';
  end if;
  raise exception 'effect %: number, body and destination are frozen', old.number
    using errcode = 'restrict_violation', constraint = 'outbox_frozen';
end $$;

create trigger outbox_frozen before update of number, key, subject, effect, destination, body on onceper.outbox
  for each row execute function onceper.guard_outbox();
create trigger outbox_kept before delete on onceper.outbox
  for each row execute function onceper.guard_outbox();

-- One try to deliver an effect: a send or a look-up. Append only.
create table onceper.delivery (
  number text collate "C" not null,
  fence bigint not null,
  step text not null,
  at timestamptz not null default clock_timestamp(),
  request_hash text not null,
  outcome text not null,
  status integer,
  counterparty_id text,
  code text,
  answer text,
  constraint delivery_pk primary key (number, fence, step),
  constraint delivery_step_known check (step in ('send', 'look_up'))
);

create trigger delivery_append_only before update or delete on onceper.delivery
  for each row execute function onceper.refuse_change('delivery_append_only');
