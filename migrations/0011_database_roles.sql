-- Purpose: what each database role may do to each table (docs/roles.md), and one owner of both schemas.
-- Lock cost: ACCESS EXCLUSIVE on every table for a moment, without reading a row.

-- Tables that a migration with a later number makes grant for themselves.
do $$
declare
  given record;
  cell record;
begin
  for given in
    select * from (values
      ('onceper.job',                 'select',                 'select',                 'select', 'select'),
      ('onceper.rule',                'select',                 'select',                 'select', 'select'),
      ('onceper.one_off',             'select',                 'select, insert',         'select', 'select'),
      ('onceper.run',                 'select, insert, update', 'select, update',         'select', 'select'),
      ('onceper.action',              'select, insert, update', 'select, insert, update', 'select', 'select'),
      ('onceper.attempt',             'select, insert, update', 'select, update',         'select', 'select'),
      ('onceper.slice',               'select, insert, update', 'select',                 'select', 'select'),
      ('onceper.outbox',              'select, insert, update', 'select, update',         'select', 'select'),
      ('onceper.delivery',            'select, insert',         'select, delete',         'select', 'select'),
      ('onceper.webhook',             'select, insert, update', 'select',                 'select', ''),
      ('onceper.outbox_act',          'select',                 'select, insert',         'select', 'select'),
      ('onceper.epoch',               'select, update',         'select, update',         'select', 'select'),
      ('settlement.merchant',         'select',                 'select, insert',         '',       'select'),
      ('settlement.period',           'select, insert, update', 'select, insert, update', 'select', 'select'),
      ('settlement.import',           '',                       'select, insert',         'select', 'select'),
      ('settlement.transaction',      'select',                 'select, insert, update', '',       'select'),
      ('settlement.assigned_posting', 'select',                 'select, insert, update', 'select', 'select'),
      ('settlement.line',             'select, insert',         'select',                 'select', 'select'),
      ('settlement.posting',          'select, insert',         'select, insert',         'select', 'select'),
      ('settlement.document',         'select, insert',         'select',                 'select', 'select'),
      ('public.onceper_migration',    'select',                 'select',                 'select', 'select')
    ) as v (name, worker, operator, auditor, reader)
  loop
    continue when to_regclass(given.name) is null;
    for cell in
      select * from (values ('onceper_worker', given.worker), ('onceper_operator', given.operator),
                            ('onceper_auditor', given.auditor), ('onceper_reader', given.reader)) as c (role, verbs)
       where verbs <> ''
    loop
      execute format('grant %s on %s to %I', cell.verbs, given.name, cell.role);
    end loop;
  end loop;
end $$;

grant usage on sequence settlement.import_id_seq to onceper_operator;
grant usage on schema settlement to onceper_worker, onceper_operator, onceper_auditor, onceper_reader;

-- Both schemas and all in them belong to the group whose members migrate, not to whoever happened to migrate first. From here on
-- `npx onceper migrate` acts as that group.
do $$
declare
  thing text;
begin
  if not pg_has_role(current_user, 'onceper_owner', 'member') then
    execute format('grant onceper_owner to %I', current_user);
  end if;
  execute format('grant create on database %I to onceper_owner', current_database());
  for thing in select unnest(array['onceper', 'settlement']) loop
    execute format('alter schema %I owner to onceper_owner', thing);
  end loop;
  for thing in
    select format('table %s', oid::regclass) from pg_class
     where relnamespace in ('onceper'::regnamespace, 'settlement'::regnamespace) and relkind = 'r'
    union all
    select format('function %s', oid::regprocedure) from pg_proc
     where pronamespace in ('onceper'::regnamespace, 'settlement'::regnamespace)
  loop
    execute format('alter %s owner to onceper_owner', thing);
  end loop;
end $$;
