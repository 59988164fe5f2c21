-- Purpose: requests that another person decides, what they allow a run beyond the rule, and backfills (ARCHITECTURE.md, "People").
-- Lock cost: creates only; takes no lock on anything that exists.

-- One request. `plan` is exactly what was shown and `digest` its SHA-256; an edit changes both and voids what was approved.
create table onceper.approval (
  id text collate "C" not null,
  kind text not null,
  subject text not null,
  job text not null,
  key text,
  ask jsonb not null,
  reason text not null,
  plan jsonb not null,
  digest text not null,
  revision integer not null default 1,
  state text not null default 'requested',
  requested_by text not null,
  requested_at timestamptz not null default clock_timestamp(),
  edited_by text not null,
  edited_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  decided_by text,
  decided_at timestamptz,
  decision_reason text,
  executed_by text,
  executed_at timestamptz,
  stale_reason text,
  constraint approval_pk primary key (id),
  constraint approval_kind_known check (kind in ('late_run', 'empty_period', 'claim_again', 'held_run', 'backfill', 'takeover',
    'resolve_effect', 'retry_effect', 'skip', 'release_hold', 'adjustment', 'compensation', 'activate_rule')),
  constraint approval_state_known check (state in ('requested', 'approved', 'rejected', 'expired', 'executed', 'stale')),
  constraint approval_digest_form check (digest ~ '^[0-9a-f]{64}$'),
  constraint approval_revision_counts_from_one check (revision >= 1),
  -- In the one spelling of an actor's id, or ALICE would approve what alice asked for.
  constraint approval_actor_form check (lower(requested_by || edited_by || coalesce(decided_by, '') || coalesce(executed_by, ''))
    = requested_by || edited_by || coalesce(decided_by, '') || coalesce(executed_by, '')),
  constraint approval_is_signed check (requested_by <> '' and edited_by <> '' and reason <> ''),
  constraint approval_decision_is_signed check ((decided_by is null) = (decided_at is null) and decided_by <> ''),
  constraint approval_decided_by_someone check (state in ('requested', 'expired') or decided_by is not null),
  constraint approval_requested_is_undecided check (state <> 'requested' or decided_by is null),
  -- Whoever asks may take the request back, which is a rejection; nobody approves what they asked for or edited last.
  constraint approval_approver_is_not_asker check
    (state = 'rejected' or decided_by is null or (decided_by <> requested_by and decided_by <> edited_by)),
  constraint approval_decided_in_time check (state not in ('approved', 'executed', 'stale') or decided_at <= expires_at),
  constraint approval_executed_is_signed check
    ((state = 'executed') = (executed_at is not null) and (executed_at is null) = (executed_by is null)),
  constraint approval_executed_in_time check (executed_at is null or executed_at <= expires_at),
  constraint approval_stale_has_reason check ((state = 'stale') = (stale_reason is not null))
);

-- A double click is one request.
create unique index approval_one_open on onceper.approval (kind, subject) where state in ('requested', 'approved');
create index approval_by_time on onceper.approval (requested_at);
create index approval_by_key on onceper.approval (key, requested_at) where key is not null;

create function onceper.guard_approval() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'approval % is never deleted', old.id
      using errcode = 'restrict_violation', constraint = 'approval_never_deleted';
  end if;
  if old.state in ('rejected', 'expired', 'executed', 'stale') then
    raise exception 'approval % is %, which is final', old.id, old.state
      using errcode = 'restrict_violation', constraint = 'approval_final';
  end if;
  if (new.id, new.kind, new.subject, new.job, new.key, new.requested_by, new.requested_at)
     is distinct from (old.id, old.kind, old.subject, old.job, old.key, old.requested_by, old.requested_at) then
    raise exception 'approval %: what it is about and who asked are frozen', old.id
      using errcode = 'restrict_violation', constraint = 'approval_frozen';
  end if;
  if (new.ask, new.reason, new.plan, new.digest, new.edited_by, new.edited_at, new.expires_at)
     is distinct from (old.ask, old.reason, old.plan, old.digest, old.edited_by, old.edited_at, old.expires_at)
     and not (new.state = 'requested' and new.revision = old.revision + 1) then
    raise exception 'approval %: an edit makes it a request again, of the next revision', old.id
      using errcode = 'check_violation', constraint = 'approval_edit_voids';
  end if;
  if new.state in ('executed', 'stale') and old.state <> 'approved'
     or new.state in ('approved', 'rejected') and old.state <> 'requested' then
    raise exception 'approval %: % does not follow %', old.id, new.state, old.state
      using errcode = 'check_violation', constraint = 'approval_goes_forward';
  end if;
  return new;
end $$;

create trigger approval_guard before update or delete on onceper.approval
  for each row execute function onceper.guard_approval();

-- What an executed approval allows one run beyond the rule, tied to what it was held for: the code, and the fence that the key
-- had then (0 where it had no action). No foreign key to run: a backfill's run is opened later.
create table onceper.waiver (
  run text not null,
  code text not null,
  fence bigint not null,
  approval text collate "C" not null,
  given_at timestamptz not null default clock_timestamp(),
  constraint waiver_pk primary key (run, code, fence),
  constraint waiver_of_approval foreign key (approval) references onceper.approval (id)
);

create trigger waiver_append_only before update or delete on onceper.waiver
  for each row execute function onceper.refuse_change('waiver_append_only');

create function onceper.guard_waiver() returns trigger language plpgsql as $$
begin
  if exists (select from onceper.approval where id = new.approval and state <> 'executed') then
    raise exception 'run %: approval % was not executed', new.run, new.approval
      using errcode = 'restrict_violation', constraint = 'waiver_needs_execution';
  end if;
  return new;
end $$;

create trigger waiver_guard before insert on onceper.waiver
  for each row execute function onceper.guard_waiver();

-- An approved backfill, made when its approval was executed; its id is the approval's.
create table onceper.backfill (
  id text collate "C" not null,
  job text not null,
  most_active integer not null,
  actor text not null,
  reason text not null,
  began_at timestamptz not null default clock_timestamp(),
  cancelled_by text,
  cancelled_at timestamptz,
  cancel_reason text,
  ended_at timestamptz,
  constraint backfill_pk primary key (id),
  constraint backfill_of_approval foreign key (id) references onceper.approval (id),
  constraint backfill_is_bounded check (most_active >= 1),
  constraint backfill_cancel_is_signed check
    ((cancelled_at is null) = (cancelled_by is null) and (cancelled_at is null) = (cancel_reason is null))
);

-- One period of a backfill. `start_id` is the id of the run that it starts, fixed before anything is started: dispatched twice,
-- by two workers, it is one run. `left` periods are done or under way already, and stay as they are.
create table onceper.backfill_period (
  backfill text collate "C" not null,
  ordinal integer not null,
  period text not null,
  key text not null,
  start_id text not null,
  scheduled_at timestamptz not null,
  act text not null,
  state text not null,
  started_at timestamptz,
  ended_at timestamptz,
  outcome text,
  constraint backfill_period_pk primary key (backfill, ordinal),
  constraint backfill_period_once unique (backfill, period),
  constraint backfill_period_one_run unique (start_id),
  constraint backfill_period_of_backfill foreign key (backfill) references onceper.backfill (id),
  constraint backfill_period_act_known check (act in ('run', 'resume', 'nothing', 'untouched')),
  constraint backfill_period_state_known check (state in ('waiting', 'started', 'ended', 'cancelled', 'left')),
  constraint backfill_period_left_is_not_run check ((state = 'left') = (act in ('nothing', 'untouched'))),
  constraint backfill_period_started_has_time check ((state in ('started', 'ended')) = (started_at is not null)),
  constraint backfill_period_ended_has_outcome check
    ((state = 'ended') = (outcome is not null) and (state = 'ended') = (ended_at is not null))
);

create index backfill_unfinished on onceper.backfill (began_at) where ended_at is null;

grant select on onceper.approval, onceper.waiver, onceper.backfill, onceper.backfill_period
  to onceper_worker, onceper_operator, onceper_auditor, onceper_reader;
-- A worker opens the request of a run that it holds, and writes down that an earlier one has expired; it decides none.
grant insert, update (state) on onceper.approval to onceper_worker;
grant insert, update on onceper.approval to onceper_operator;
grant insert on onceper.waiver, onceper.backfill, onceper.backfill_period to onceper_operator;
grant update (cancelled_by, cancelled_at, cancel_reason) on onceper.backfill to onceper_operator;
grant update (state) on onceper.backfill_period to onceper_operator;
grant update (ended_at) on onceper.backfill to onceper_worker;
grant update (state, started_at, ended_at, outcome) on onceper.backfill_period to onceper_worker;
