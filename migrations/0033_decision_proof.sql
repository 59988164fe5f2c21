-- Purpose: beside each decision of a person stands the signed token that it was verified from (docs/audit.md, docs/roles.md).
-- Lock cost: SHARE ROW EXCLUSIVE on onceper.approval for a moment; its rows, one a request, are read once.

-- An actor's name in its one spelling, as normaliseActorId of src/kernel/actor.ts writes it.
create function onceper.actor_id(named text) returns text language sql immutable
  set search_path = pg_catalog, pg_temp as $$
  select left(regexp_replace(lower(btrim(normalize(named, nfkc), e' \t\n\r')), '\s+', '-', 'g'), 200)
$$;

-- The claims of a signed token, unverified: what signed it the auditor checks, who has the key. Null for what is no token.
create function onceper.token_claims(token text) returns jsonb language plpgsql immutable
  set search_path = pg_catalog, pg_temp as $$
declare
  payload text := translate(split_part(token, '.', 2), '-_', '+/');
begin
  if token !~ '^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$' then
    return null;
  end if;
  return convert_from(decode(rpad(payload, (length(payload) + 3) / 4 * 4, '='), 'base64'), 'UTF8')::jsonb;
exception when data_exception then
  return null;
end $$;

-- Append only. A token is a credential until its own time is over, so nobody may read this table; onceper.proofs() shows the rest.
-- token is null where the login that decided is bound by nothing (login, login_as), and in decisions from before this table.
create table onceper.decision_proof (
  approval text collate "C" not null,
  revision integer not null,
  verb text not null,
  actor text not null,
  token text,
  expires_at timestamptz,
  login text not null default session_user,
  login_as text,
  at timestamptz not null default clock_timestamp(),
  constraint decision_proof_pk primary key (approval, revision, verb),
  constraint decision_proof_of_approval foreign key (approval) references onceper.approval (id),
  constraint decision_proof_verb_known check (verb in ('approve', 'reject', 'execute')),
  constraint decision_proof_has_one check ((token is null) = (expires_at is null) and (token is not null or login_as is not null)),
  constraint decision_proof_bounded check (octet_length(token) <= 16384)
);

create trigger decision_proof_append_only before update or delete on onceper.decision_proof
  for each row execute function onceper.refuse_change('decision_proof_append_only');
create trigger decision_proof_never_truncated before truncate on onceper.decision_proof
  for each statement execute function onceper.refuse_change('decision_proof_never_truncated');

-- Whose a token is and until when are read from it. Five seconds: so far the clocks of an identity provider and this server may differ.
create function onceper.guard_proof() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  claims jsonb := onceper.token_claims(new.token);
begin
  new.at := clock_timestamp();
  new.login := session_user;
  new.login_as := onceper.unbound_login();
  if new.token is null then
    return new;
  end if;
  if jsonb_typeof(claims -> 'sub') is distinct from 'string' or jsonb_typeof(claims -> 'exp') is distinct from 'number' then
    raise exception 'approval %: what came with the decision is no token', new.approval
      using errcode = 'restrict_violation', constraint = 'decision_proof_is_token';
  end if;
  if onceper.actor_id('user:' || btrim(claims ->> 'sub')) <> new.actor then
    raise exception 'approval %: the token is not one of %', new.approval, new.actor
      using errcode = 'restrict_violation', constraint = 'decision_proof_of_its_actor';
  end if;
  if (claims ->> 'exp')::numeric not between extract(epoch from clock_timestamp() - interval '5 seconds') and 253402300799 then
    raise exception 'approval %: the token of % had expired', new.approval, new.actor
      using errcode = 'restrict_violation', constraint = 'decision_proof_in_time';
  end if;
  new.expires_at := to_timestamp((claims ->> 'exp')::float8);
  return new;
end $$;

create trigger decision_proof_guard before insert on onceper.decision_proof
  for each row execute function onceper.guard_proof();

-- After the statement that decides, which writes the proof too. A login that nothing binds needs none, and that is written down.
create function onceper.guard_decision() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  decided text := case new.state when 'approved' then 'approve' when 'rejected' then 'reject' else 'execute' end;
  decider text := case new.state when 'executed' then new.executed_by else new.decided_by end;
begin
  if exists (select from onceper.decision_proof p
              where (p.approval, p.revision, p.verb, p.actor) = (new.id, new.revision, decided, decider)
                and p.at >= now() and p.xmin = pg_current_xact_id()::xid) then
    return null;
  end if;
  if onceper.unbound_login() is null then
    raise exception 'approval %: % by % without a token of theirs', new.id, new.state, decider
      using errcode = 'restrict_violation', constraint = 'approval_decision_is_proven';
  end if;
  insert into onceper.decision_proof (approval, revision, verb, actor) values (new.id, new.revision, decided, decider);
  return null;
end $$;

create trigger approval_proven after update of state on onceper.approval
  for each row when (old.state is distinct from new.state and new.state in ('approved', 'rejected', 'executed'))
  execute function onceper.guard_decision();

-- Who decided and who executed is written with that step and never again: another name would be another's proof.
create function onceper.guard_signature() returns trigger language plpgsql as $$
begin
  if new.state = old.state or new.state in ('executed', 'stale', 'expired') then
    if (new.decided_by, new.decided_at, new.decision_reason)
       is distinct from (old.decided_by, old.decided_at, old.decision_reason) then
      raise exception 'approval %: who decided it stands', old.id
        using errcode = 'restrict_violation', constraint = 'approval_decision_stands';
    end if;
  end if;
  if new.state = 'expired' and old.state <> 'expired' and old.expires_at > clock_timestamp() then
    raise exception 'approval %: its time is not over before %', old.id, old.expires_at
      using errcode = 'restrict_violation', constraint = 'approval_expires_in_time';
  end if;
  return null;
end $$;

create trigger approval_signature after update on onceper.approval
  for each row execute function onceper.guard_signature();

-- For whoever verifies: every decision that has a row, and its token once nobody can use it any more. A minute beyond its time, for
-- whoever believes a clock that is behind.
create function onceper.proofs() returns table (approval text, revision integer, verb text, actor text, token text,
                                                expires_at timestamptz, login text, login_as text, at timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.approval, p.revision, p.verb, p.actor,
         case when p.expires_at < clock_timestamp() - interval '1 minute' then p.token end,
         p.expires_at, p.login, p.login_as, p.at
    from onceper.decision_proof p
$$;

revoke execute on function onceper.proofs() from public;
grant execute on function onceper.proofs() to onceper_auditor, onceper_operator, onceper_server, onceper_break_glass;
grant insert on onceper.decision_proof to onceper_server, onceper_break_glass;

-- Decisions from before this table.
alter table onceper.decision_proof disable trigger decision_proof_guard;
insert into onceper.decision_proof (approval, revision, verb, actor, login_as)
select id, revision, case when state = 'rejected' then 'reject' else 'approve' end, decided_by, 'before'
  from onceper.approval where decided_by is not null
union all
select id, revision, 'execute', executed_by, 'before' from onceper.approval where executed_by is not null;
alter table onceper.decision_proof enable trigger decision_proof_guard;
