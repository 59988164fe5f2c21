-- Purpose: the database roles, and the audit: who did what, append only, hash chained (docs/audit.md, docs/roles.md).
-- Lock cost: creates only; takes no lock on anything that exists. Roles belong to the whole server: those that are there are kept.

-- Groups, for the logins of an installation to be members of. Several databases of one server may create them at this moment.
do $$
declare
  name text;
begin
  foreach name in array array['onceper_owner', 'onceper_worker', 'onceper_operator', 'onceper_auditor', 'onceper_reader'] loop
    if not exists (select from pg_roles where rolname = name) then
      begin
        execute format('create role %I nologin', name);
      exception when duplicate_object or unique_violation then
        null;
      end;
    end if;
  end loop;
end $$;

grant usage on schema onceper to onceper_owner, onceper_worker, onceper_operator, onceper_auditor, onceper_reader;

-- The last entry of the chain, in one row whose lock puts the entries in a line. Whoever takes it commits next: it is the last
-- row that a transaction locks, so nobody who holds it waits for anything.
create table onceper.audit_head (
  one boolean not null default true,
  seq bigint not null,
  hash text not null,
  constraint audit_head_pk primary key (one),
  constraint audit_head_one_row check (one)
);

insert into onceper.audit_head (seq, hash) values (0, repeat('0', 64));

-- One entry. seq, at, previous and hash are the database's own, whatever an insert says. detail is canonical JSON (RFC 8785),
-- kept as text: jsonb would write a number anew.
create table onceper.audit (
  seq bigint not null,
  at timestamptz not null,
  actor text not null,
  verb text not null,
  job text,
  key text,
  run text,
  subject text,
  detail text not null,
  previous text not null,
  hash text not null,
  constraint audit_pk primary key (seq),
  constraint audit_actor_form check (actor ~ '^[^[:space:]]{1,200}$' and actor !~ '[A-Z]'),
  constraint audit_verb_form check (verb ~ '^[a-z]+(-[a-z]+)*$'),
  constraint audit_detail_is_object check (jsonb_typeof(detail::jsonb) = 'object')
);

create index audit_by_key on onceper.audit (key, seq) where key is not null;
create index audit_by_actor on onceper.audit (actor, seq);

-- The entry as canonical JSON, its members in the order of RFC 8785; to_json escapes a text as that does. The instant is UTC to
-- the microsecond, so that no session's time zone shows in it.
create function onceper.audit_hash(entry onceper.audit) returns text language sql stable
  set search_path = pg_catalog, pg_temp as $$
  select encode(sha256(convert_to(
    '{"actor":' || to_json(entry.actor)::text
    || ',"at":"' || to_char(entry.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    || '","detail":' || entry.detail
    || ',"job":' || coalesce(to_json(entry.job)::text, 'null')
    || ',"key":' || coalesce(to_json(entry.key)::text, 'null')
    || ',"previous":"' || entry.previous
    || '","run":' || coalesce(to_json(entry.run)::text, 'null')
    || ',"seq":"' || entry.seq
    || '","subject":' || coalesce(to_json(entry.subject)::text, 'null')
    || ',"verb":' || to_json(entry.verb)::text || '}', 'UTF8')), 'hex')
$$;

-- As its owner, so that who may append need not be able to move the head. A process that stops between its entry and its COMMIT
-- would hold up every grant and close of the installation: the server ends it after two seconds.
create function onceper.chain_audit() returns trigger language plpgsql security definer
  set search_path = pg_catalog, pg_temp as $$
declare
  head onceper.audit_head;
  patience interval := current_setting('idle_in_transaction_session_timeout')::interval;
begin
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

create trigger audit_chained before insert on onceper.audit
  for each row execute function onceper.chain_audit();
create trigger audit_append_only before update or delete on onceper.audit
  for each row execute function onceper.refuse_change('audit_append_only');
create trigger audit_never_truncated before truncate on onceper.audit
  for each statement execute function onceper.refuse_change('audit_never_truncated');

create function onceper.guard_audit_head() returns trigger language plpgsql as $$
begin
  if new.seq is distinct from old.seq + 1 then
    raise exception 'the head of the audit goes from % to %, not to %', old.seq, old.seq + 1, new.seq
      using errcode = 'restrict_violation', constraint = 'audit_head_goes_forward';
  end if;
  return new;
end $$;

create trigger audit_head_guard before update on onceper.audit_head
  for each row execute function onceper.guard_audit_head();
create trigger audit_head_kept before delete on onceper.audit_head
  for each row execute function onceper.refuse_change('audit_head_kept');
create trigger audit_head_never_truncated before truncate on onceper.audit_head
  for each statement execute function onceper.refuse_change('audit_head_never_truncated');

grant select, insert on onceper.audit to onceper_worker, onceper_operator;
grant select on onceper.audit to onceper_auditor;
grant select on onceper.audit_head to onceper_worker, onceper_operator, onceper_auditor;
