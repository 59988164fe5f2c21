-- Purpose: a worker writes as a process, never as a person; and it freezes delivery but never lifts a freeze (docs/roles.md).
-- Lock cost: SHARE ROW EXCLUSIVE on onceper.approval for a moment; no row is read.

-- Whose name this login may write under: any, where it has verified people; else a process's, or that of whoever asked for the run,
-- in the transaction that stores what was decided on it.
create function onceper.may_write_as(actor text, verb text, of_run text) returns boolean language sql stable
  set search_path = pg_catalog, pg_temp as $$
  select actor ~ '^((worker|schedule|workflow|relay|webhook):.|(temporal|expect|unknown)$)'
      or onceper.acts_for_people()
      or verb in ('refused', 'conflict', 'in-progress', 'held', 'deferred', 'request')
         and exists (select from onceper.run r
                      where r.start_id = of_run and r.xmin = pg_current_xact_id()::xid and onceper.actor_id(r.actor) = may_write_as.actor)
$$;

create or replace function onceper.chain_audit() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  head onceper.audit_head;
  patience interval := current_setting('idle_in_transaction_session_timeout')::interval;
begin
  if not onceper.may_write_as(new.actor, new.verb, new.run) then
    raise exception 'login % may not write to the audit as %', session_user, new.actor
      using errcode = 'restrict_violation', constraint = 'audit_actor_is_the_logins';
  end if;
  select * into strict head from onceper.audit_head for update;
  new.seq := head.seq + 1;
  new.at := clock_timestamp();
  new.previous := head.hash;
  new.hash := onceper.audit_hash(new);
  update onceper.audit_head set seq = new.seq, hash = new.hash;
  if patience = interval '0' or patience > interval '2 seconds' then
    perform set_config('idle_in_transaction_session_timeout', '2s', true);
  end if;
  return new;
end $$;

-- A worker opens the request of a run that it holds, in the name of whoever asked for that run, and no other.
create function onceper.guard_request() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
begin
  if new.requested_by <> new.edited_by or not onceper.may_write_as(new.requested_by, 'request', new.ask ->> 'run') then
    raise exception 'login % may not ask as %', session_user, new.requested_by
      using errcode = 'restrict_violation', constraint = 'approval_asked_by_the_logins';
  end if;
  return null;
end $$;

create trigger approval_request after insert on onceper.approval
  for each row execute function onceper.guard_request();

create or replace function onceper.guard_epoch() returns trigger language plpgsql as $$
begin
  if new.epoch < old.epoch then
    raise exception 'the epoch may not fall from % to %', old.epoch, new.epoch
      using errcode = 'check_violation', constraint = 'epoch_never_falls';
  end if;
  if old.frozen_at is not null and (new.frozen_at, new.frozen_reason) is distinct from (old.frozen_at, old.frozen_reason)
     and not onceper.acts_for_people() then
    raise exception 'login % may not lift or change a freeze: a person does, through onceper server', session_user
      using errcode = 'restrict_violation', constraint = 'epoch_thawed_for_a_person';
  end if;
  return new;
end $$;
