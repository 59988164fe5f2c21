-- Purpose: a key's period is written in the one form that its job's periods have, so that no hand can settle a period a second time
-- under another spelling of its label; and an adjustment, which only posts, can deliver nothing.
-- Lock cost: ACCESS EXCLUSIVE on onceper.action while its rows, one a period, are read once.

alter table onceper.action
  add constraint action_period_form check (period ~ '^([12][0-9]{3}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]))?)?|-W(0[1-9]|[1-4][0-9]|5[0-3]))?|FY[12][0-9]{3}(-P(0[1-9]|1[0-2]))?)$'),
  add constraint action_adj_delivers_nothing check (adj is null or not delivering);

-- `2026-09-01` is a well-formed label, but of no month: the kind of period is the rule's, which the action pins.
create function onceper.guard_action_period() returns trigger language plpgsql as $$
declare
  kind text;
  form text;
begin
  select body ->> 'period' into kind from onceper.rule where job = new.job and version = new.rule_version;
  form := case kind
    when 'year' then '^[0-9]{4}$'
    when 'month' then '^[0-9]{4}-[0-9]{2}$'
    when 'week' then '-W'
    when 'day' then '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'
    when 'hour' then 'T'
    when 'fiscal-year' then '^FY[0-9]{4}$'
    when 'fiscal-month' then '-P'
    else '' end;
  if new.period !~ form then
    raise exception 'action %: % is no period of kind %', new.key, new.period, kind
      using errcode = 'check_violation', constraint = 'action_period_of_kind';
  end if;
  return null;
end $$;

-- After the row's own checks: what is no period at all is refused by its form first.
create trigger action_period_guard after insert or update of job, period, rule_version on onceper.action
  for each row execute function onceper.guard_action_period();
