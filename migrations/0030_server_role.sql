-- Purpose: people never write to the ledger, a trusted process does for somebody whom it has verified (docs/roles.md).
-- Lock cost: none but on the catalogue. Roles belong to the whole server: those that are there are kept.

-- With the login's own right to make roles: the group of owners, which migrations act as, has none.
do $$
declare
  acting name := current_user;
  name text;
begin
  execute 'reset role';
  foreach name in array array['onceper_server', 'onceper_break_glass'] loop
    if not exists (select from pg_roles where rolname = name) then
      begin
        execute format('create role %I nologin', name);
      exception
        when duplicate_object or unique_violation then
          null;
        when insufficient_privilege then
          raise exception 'this login may not make the group %', name
            using hint = 'as a superuser: create role onceper_server nologin; create role onceper_break_glass nologin';
      end;
    end if;
  end loop;
  -- knex's own table is the login's.
  if to_regclass('public.onceper_migration') is not null
     and has_table_privilege('public.onceper_migration', 'select with grant option') then
    grant select on public.onceper_migration to onceper_server, onceper_break_glass;
  end if;
  perform set_config('role', acting, true);
end $$;

grant usage on schema onceper, settlement to onceper_server, onceper_break_glass;

-- What people's logins could do until now, the server's alone may do from here on; a break-glass login may do the same, loudly.
do $$
declare
  given record;
begin
  for given in
    select * from (values
      ('onceper.one_off',             'select, insert'),
      ('onceper.schedule',            'select, insert, update'),
      ('onceper.zone_table',          'select, insert'),
      ('onceper.run',                 'select, update'),
      ('onceper.action',              'select, insert, update'),
      ('onceper.attempt',             'select, update'),
      ('onceper.outbox',              'select, update'),
      ('onceper.outbox_act',          'select, insert'),
      ('onceper.delivery',            'select, delete'),
      ('onceper.epoch',               'select, update'),
      ('onceper.approval',            'select, insert, update'),
      ('onceper.waiver',              'select, insert'),
      ('onceper.backfill',            'select, insert, update (cancelled_by, cancelled_at, cancel_reason)'),
      ('onceper.backfill_period',     'select, insert, update (state)'),
      ('onceper.audit',               'select, insert'),
      ('settlement.merchant',         'select, insert'),
      ('settlement.period',           'select, insert, update'),
      ('settlement.import',           'select, insert'),
      ('settlement.transaction',      'select, insert, update'),
      ('settlement.assigned_posting', 'select, insert, update'),
      ('settlement.posting',          'select, insert'),
      ('settlement.document',         'select, insert'),
      ('onceper.job',                 'select'),
      ('onceper.rule',                'select'),
      ('onceper.slice',               'select'),
      ('onceper.webhook',             'select'),
      ('onceper.audit_head',          'select'),
      ('onceper.item',                'select'),
      ('onceper.item_result',         'select'),
      ('settlement.line',             'select')
    ) as v (name, verbs)
  loop
    execute format('grant %s on %s to onceper_server, onceper_break_glass', given.verbs, given.name);
    execute format('revoke insert, update, delete on %s from onceper_operator', given.name);
  end loop;
end $$;

-- Revoking a table's update does not take that of single columns.
revoke update (cancelled_by, cancelled_at, cancel_reason) on onceper.backfill from onceper_operator;
revoke update (state) on onceper.backfill_period from onceper_operator;
revoke usage on sequence settlement.import_id_seq from onceper_operator;
grant usage on sequence settlement.import_id_seq to onceper_server, onceper_break_glass;

-- Why the guards don't bind this login: it could take them away anyhow, or it is the emergency's. Null where they bind. Asked of
-- the login, which no statement of its own can change, and not of the role that it acts as or of a setting.
create function onceper.unbound_login() returns text language sql stable
  set search_path = pg_catalog, pg_temp as $$
  select case
           when r.rolsuper then 'superuser'
           when pg_has_role(r.oid, n.nspowner, 'member') then 'owner'
           when pg_has_role(r.oid, 'onceper_break_glass', 'member') then 'break_glass' end
    from pg_roles r cross join pg_namespace n
   where r.rolname = session_user and n.nspname = 'onceper'
$$;

-- Whether this login may write as a person: only what has verified people, and what could not be bound.
create function onceper.acts_for_people() returns boolean language sql stable
  set search_path = pg_catalog, pg_temp as $$
  select pg_has_role(session_user, 'onceper_server', 'member') or onceper.unbound_login() is not null
$$;
