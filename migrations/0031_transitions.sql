-- Purpose: rows are made in, and go to, the states that src/kernel/transitions.ts lists and no other, whoever writes (ARCHITECTURE.md, "States").
-- Lock cost: SHARE ROW EXCLUSIVE on run, action, attempt, outbox, approval, backfill_period and settlement.period for a moment; no row is read.

-- The lists of src/kernel/transitions.ts: after follows before, and a row is made in what follows `none`. test/store/transitions.test.ts
-- compares the two. A migration that changes the lists changes these rows.
create table onceper.transition (
  machine text collate "C" not null,
  before text collate "C" not null,
  after text collate "C" not null,
  constraint transition_pk primary key (machine, before, after),
  constraint transition_moves check (before <> after)
);

insert into onceper.transition (machine, before, after)
select machine, before, unnest(afters::text[]) from (values
  ('run', 'none', '{refused,conflict,duplicate,in_progress,held,deferred,admitted}'),
  ('run', 'held', '{refused,conflict,duplicate,in_progress,deferred,admitted}'),
  ('run', 'deferred', '{refused,conflict,duplicate,in_progress,held,admitted}'),
  ('action', 'none', '{admitted,skipped,done}'),
  ('action', 'admitted', '{running,cancelled,skipped}'),
  ('action', 'running', '{failed,exhausted,cancelled,done}'),
  ('action', 'failed', '{running,cancelled,skipped}'),
  ('action', 'exhausted', '{admitted,cancelled,skipped}'),
  ('action', 'cancelled', '{admitted,skipped}'),
  ('action', 'done', '{compensating}'),
  ('action', 'compensating', '{compensated}'),
  ('attempt', 'none', '{open}'),
  ('attempt', 'open', '{done,failed,worker_lost,shutdown,lease_lost,lease_expired,superseded,cancelled}'),
  ('effect', 'none', '{pending}'),
  ('effect', 'pending', '{sending,unknown,dead}'),
  ('effect', 'sending', '{succeeded,failed,pending,pending_external,unknown,needs_attention,dead}'),
  ('effect', 'unknown', '{succeeded,failed,pending_external,sending,needs_attention,dead}'),
  ('effect', 'pending_external', '{succeeded,failed,needs_attention}'),
  ('effect', 'succeeded', '{returned}'),
  ('effect', 'needs_attention', '{sending,unknown,succeeded,failed,pending_external}'),
  ('effect', 'dead', '{pending,unknown,failed}'),
  ('period', 'none', '{open}'),
  ('period', 'open', '{sealed,skipped}'),
  ('period', 'sealed', '{closed,skipped}'),
  ('period', 'closed', '{reconciled}'),
  ('approval', 'none', '{requested}'),
  ('approval', 'requested', '{approved,rejected,expired}'),
  ('approval', 'approved', '{requested,executed,stale,expired}'),
  ('backfill_period', 'none', '{waiting,left}'),
  ('backfill_period', 'waiting', '{started,cancelled}'),
  ('backfill_period', 'started', '{ended}')
) as v (machine, before, afters);

create trigger transition_append_only before update or delete on onceper.transition
  for each row execute function onceper.refuse_change('transition_append_only');

-- The one guard of all of them: its arguments are the machine and the column that holds the state, null being `open`. Of its owner's
-- rights, so that it asks the same table for everybody.
create function onceper.guard_transition() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  was text := 'none';
  becomes text := coalesce(to_jsonb(new) ->> tg_argv[1], 'open');
begin
  if tg_op = 'UPDATE' then
    was := coalesce(to_jsonb(old) ->> tg_argv[1], 'open');
  end if;
  if not exists (select from onceper.transition t where t.machine = tg_argv[0] and t.before = was and t.after = becomes) then
    if was = 'none' then
      raise exception '%: no % is made %', tg_table_name, tg_argv[0], becomes
        using errcode = 'restrict_violation', constraint = 'transition_birth';
    end if;
    raise exception '%: % of % does not become %', tg_table_name, tg_argv[0], was, becomes
      using errcode = 'restrict_violation', constraint = 'transition_known';
  end if;
  return null;
end $$;

-- After the rows' own checks, and after the foreign keys: they name what is wrong more exactly.
create trigger run_born after insert on onceper.run
  for each row execute function onceper.guard_transition('run', 'decision');
create trigger run_goes after update of decision on onceper.run
  for each row when (old.decision is distinct from new.decision) execute function onceper.guard_transition('run', 'decision');
create trigger action_born after insert on onceper.action
  for each row execute function onceper.guard_transition('action', 'state');
create trigger action_goes after update of state on onceper.action
  for each row when (old.state is distinct from new.state) execute function onceper.guard_transition('action', 'state');
create trigger attempt_born after insert on onceper.attempt
  for each row execute function onceper.guard_transition('attempt', 'outcome');
create trigger attempt_goes after update of outcome on onceper.attempt
  for each row when (old.outcome is distinct from new.outcome) execute function onceper.guard_transition('attempt', 'outcome');
create trigger period_born after insert on settlement.period
  for each row execute function onceper.guard_transition('period', 'state');
create trigger period_goes after update of state on settlement.period
  for each row when (old.state is distinct from new.state) execute function onceper.guard_transition('period', 'state');
create trigger approval_born after insert on onceper.approval
  for each row execute function onceper.guard_transition('approval', 'state');
create trigger approval_goes after update of state on onceper.approval
  for each row when (old.state is distinct from new.state) execute function onceper.guard_transition('approval', 'state');
create trigger backfill_period_born after insert on onceper.backfill_period
  for each row execute function onceper.guard_transition('backfill_period', 'state');
create trigger backfill_period_goes after update of state on onceper.backfill_period
  for each row when (old.state is distinct from new.state) execute function onceper.guard_transition('backfill_period', 'state');

-- Relays move millions of effects: what the table has now is left alone by the condition, a constant, and only the rest comes to the
-- guard, which asks the table. So a row that a later migration adds there counts at once; one that it takes away needs this again.
do $$
begin
  execute format(
    'create trigger outbox_goes after update of state on onceper.outbox
       for each row when (old.state is distinct from new.state and old.state || '' '' || new.state <> all (%L::text[]))
       execute function onceper.guard_transition(''effect'', ''state'')',
    (select array_agg(before || ' ' || after order by before, after)
       from onceper.transition where machine = 'effect' and before <> 'none'));
end $$;

-- The privileges that reading it needs; nobody at work writes it.
grant select on onceper.transition
  to onceper_worker, onceper_server, onceper_break_glass, onceper_operator, onceper_auditor, onceper_reader;
