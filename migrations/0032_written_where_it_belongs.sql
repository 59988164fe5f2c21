-- Purpose: effects are written in their key's slice or close, and postings of people by an executed request (ARCHITECTURE.md, "Effects", "People").
-- Lock cost: SHARE ROW EXCLUSIVE on outbox, slice and assigned_posting for a moment, ACCESS EXCLUSIVE on the last to add a column; no row is read.

-- A finished slice stays as it is: an effect is believed to be a slice's because that slice was finished in its transaction.
create function onceper.guard_slice() returns trigger language plpgsql as $$
begin
  if old.done_at is not null and (new.done_at, new.fence) is distinct from (old.done_at, old.fence)
     or old.result is not null and new.result is distinct from old.result then
    raise exception 'slice % of %: it is finished, and stays as it was', old.slice, old.key
      using errcode = 'restrict_violation', constraint = 'slice_finished_once';
  end if;
  if old.done_at is null and new.done_at is not null and not exists (
       select from onceper.action a where a.key = new.key and a.state = 'running' and a.fence = new.fence) then
    raise exception 'slice % of %: fence % does not hold the key', old.slice, old.key, new.fence
      using errcode = 'restrict_violation', constraint = 'slice_finished_under_fence';
  end if;
  return null;
end $$;

create trigger slice_guard after update on onceper.slice
  for each row execute function onceper.guard_slice();

create function onceper.guard_plan() returns trigger language plpgsql as $$
declare
  late text;
begin
  select a.key into late from (select distinct key from added) k join onceper.action a using (key)
   where a.state in ('done', 'compensating', 'compensated', 'skipped') limit 1;
  if late is not null then
    raise exception '%: a key that has ended gets no more slices', late
      using errcode = 'restrict_violation', constraint = 'slice_before_the_end';
  end if;
  return null;
end $$;

create trigger slice_planned after insert on onceper.slice
  referencing new table as added for each statement execute function onceper.guard_plan();

-- The instant of a close tells the transaction that closed, so it may not move.
create trigger action_done_at_fixed before update of done_at on onceper.action
  for each row when (old.done_at is not null and new.done_at is distinct from old.done_at)
  execute function onceper.refuse_change('action_done_at_fixed');

-- A statement's worth at once, and one look-up a key: an effect is born pending, in the transaction that finished a slice of its key
-- or closed it. The row's own transaction says so; now() is when this one began, and no clock of an earlier one is later.
create function onceper.guard_effects() returns trigger language plpgsql as $$
declare
  stray text;
begin
  select number || ' is made ' || state into stray from added where state <> 'pending' limit 1;
  if stray is not null then
    raise exception 'effect %', stray using errcode = 'restrict_violation', constraint = 'transition_birth';
  end if;
  select k.key into stray
    from (select distinct key from added) k
   where not exists (select from onceper.slice s
                      where s.key = k.key and s.done_at >= now() and s.xmin = pg_current_xact_id()::xid)
     and not exists (select from onceper.action a
                      where a.key = k.key and a.done_at >= now() and a.xmin = pg_current_xact_id()::xid)
   limit 1;
  if stray is not null then
    raise exception '%: effects are written by a slice of their key, or by its close', stray
      using errcode = 'restrict_violation', constraint = 'outbox_in_its_slice';
  end if;
  return null;
end $$;

create trigger outbox_written after insert on onceper.outbox
  referencing new table as added for each statement execute function onceper.guard_effects();

-- The request that was executed in the transaction that stored the posting; null in rows that a release before this one stored.
alter table settlement.assigned_posting add column approval text collate "C";

create index approval_by_execution on onceper.approval (executed_at) where executed_at is not null;

-- The request of a kind about a key, or about several effects, that this transaction has executed; null where it has executed none.
create function onceper.executed_now(kind text, key text, subject text) returns text language sql stable
  set search_path = pg_catalog, pg_temp as $$
  select a.id from onceper.approval a
   where a.executed_at >= now() and a.state = 'executed' and a.xmin = pg_current_xact_id()::xid and a.kind = executed_now.kind
     and (a.key is null or a.key = executed_now.key)
     and (a.subject = executed_now.subject or a.ask -> 'numbers' ? executed_now.subject)
$$;

-- Found, never believed: whatever an insert says is written over.
create function settlement.name_approval() returns trigger language plpgsql as $$
declare
  base text := regexp_replace(new.key, ':adj-[1-9][0-9]*$', '');
begin
  new.approval := case new.kind
    when 'manual' then onceper.executed_now('adjustment', base, base)
    when 'release' then onceper.executed_now('release_hold', base, concat_ws(':', new.key, new.merchant, new.currency, 'payout'))
    end;
  return new;
end $$;

create trigger assigned_posting_names_approval before insert on settlement.assigned_posting
  for each row execute function settlement.name_approval();

create or replace function settlement.guard_assigned_posting() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    raise exception 'assigned posting % % % %: a stored one is neither edited nor deleted', old.kind, old.key, old.merchant, old.currency
      using errcode = 'restrict_violation', constraint = 'assigned_posting_immutable';
  end if;
  if new.kind = 'release' and not exists (
       select from settlement.posting p
        where p.key = new.key and p.merchant = new.merchant and p.currency = new.currency and p.kind in ('held', 'returned')
          and p.amount = new.amount) then
    raise exception 'payout %:%:%: that amount of it is not on hold', new.key, new.merchant, new.currency
      using errcode = 'restrict_violation', constraint = 'assigned_posting_releases_a_hold';
  end if;
  if new.approval is null then
    raise exception 'assigned posting % % % %: no request for it is executed in this transaction', new.kind, new.key, new.merchant, new.currency
      using errcode = 'restrict_violation', constraint = 'assigned_posting_needs_execution';
  end if;
  return null;
end $$;

drop trigger assigned_posting_immutable on settlement.assigned_posting;
create trigger assigned_posting_immutable
  before update of key, merchant, currency, kind, account, amount, actor, reason, at, approval on settlement.assigned_posting
  for each row execute function settlement.guard_assigned_posting();

-- An adjustment's key is made done, by the transaction that executes its request; every other key is worked for.
create function onceper.guard_adjustment() returns trigger language plpgsql as $$
declare
  base text := new.job || ':' || new.period;
begin
  if new.adj is null or onceper.executed_now('adjustment', base, base) is null then
    raise exception 'action %: only an adjustment whose request is executed in this transaction is made done', new.key
      using errcode = 'restrict_violation', constraint = 'action_made_done_is_adjustment';
  end if;
  return null;
end $$;

create trigger action_made_done after insert on onceper.action
  for each row when (new.state = 'done') execute function onceper.guard_adjustment();
