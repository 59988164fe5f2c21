-- Purpose: one table of time zones decides, the ledger's own: read from PostgreSQL, kept by the job, named by what it decided; and
-- what was applied as a job's schedule, from when on its periods are started by themselves (ARCHITECTURE.md, "Time").
-- Lock cost: creates; ACCESS EXCLUSIVE on settlement.period and settlement.import for a moment, without reading a row.

-- The changes of a zone's clock as this server has them: from `since` (the first row) to `until`, in seconds of the epoch, and by
-- how many seconds the clock is ahead of UTC from then on. It looks every six days: no clock of the IANA database ever kept an
-- offset for less than 6.9 (Recife in 2000).
create function onceper.zone_changes(zone text, since timestamptz, until timestamptz)
returns table (at bigint, ahead integer) language sql stable as $$
  with recursive sample as (
    select at, (extract(epoch from to_timestamp(at) at time zone zone) - at)::int4 as ahead
      from generate_series(extract(epoch from since)::int8, extract(epoch from until)::int8, 6 * 86400) as day (at)
  ), step as (
    select lag(at) over (order by at) as low, lag(ahead) over (order by at) as before, at as high, ahead from sample
  ), search (low, high, before, ahead) as (
    select low, high, before, ahead from step where before <> ahead
    union all
    select case when m.ahead = s.before then m.at else s.low end,
           case when m.ahead = s.before then s.high else m.at end,
           s.before,
           case when m.ahead = s.before then s.ahead else m.ahead end
      from search s
      cross join lateral (
           select at, (extract(epoch from to_timestamp(at) at time zone zone) - at)::int4 as ahead
             from (select s.low + (s.high - s.low) / 2 as at) middle) m
     where s.high - s.low > 1
  )
  select extract(epoch from since)::int8, (select ahead from sample order by at limit 1)
  union all
  (select high, ahead from search where high - low = 1 order by high)
$$;

-- A version of what a job's periods and transactions are placed by. It is append only, and a later version says the same of
-- every instant before `holds_from`: what was decided is never contradicted.
create table onceper.zone_table (
  job text not null,
  version integer not null,
  zone text not null,
  source text not null,
  digest text not null,
  changes bigint[] not null,
  aheads integer[] not null,
  holds_from timestamptz,
  adopted_by text not null,
  adopted_at timestamptz not null default clock_timestamp(),
  constraint zone_table_pk primary key (job, version),
  constraint zone_table_counts_from_one check (version >= 1 and (version = 1) = (holds_from is null)),
  constraint zone_table_has_both check (cardinality(changes) = cardinality(aheads) and cardinality(changes) >= 1),
  constraint zone_table_digest_form check (digest ~ '^[0-9a-f]{64}$')
);

create trigger zone_table_append_only before update or delete on onceper.zone_table
  for each row execute function onceper.refuse_change('zone_table_append_only');

-- What was applied as a job's schedule in Temporal: `plan` is a digest of it, and `since` when it was first applied: periods that
-- come due from then on and are started by nothing else are started by the check of expected periods.
create table onceper.schedule (
  job text not null,
  since timestamptz not null default clock_timestamp(),
  plan text not null,
  applied_by text not null,
  applied_at timestamptz not null default clock_timestamp(),
  constraint schedule_pk primary key (job)
);

-- Jobs that have a rule already go by this server's table from now on.
insert into onceper.zone_table (job, version, zone, source, digest, changes, aheads, adopted_by)
select j.job, 1, r.body ->> 'zone', 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1),
       encode(sha256(convert_to(string_agg(c.at || ' ' || c.ahead, e'\n' order by c.at), 'UTF8')), 'hex'),
       array_agg(c.at order by c.at), array_agg(c.ahead order by c.at), 'migrate'
  from onceper.job j
  join onceper.rule r on r.job = j.job and r.version = j.active_rule
 cross join lateral onceper.zone_changes(r.body ->> 'zone',
       make_timestamptz(substring(r.body ->> 'first' from '[0-9]{4}')::int4 - 2, 1, 1, 0, 0, 0, 'UTC'), '2101-01-01Z') c
 group by j.job, r.body ->> 'zone';

alter table settlement.period add column zone_facts text;
alter table settlement.import add column zone_facts text;

create or replace function settlement.guard_period() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'period % is never deleted', old.period using errcode = 'restrict_violation', constraint = 'period_kept';
  end if;
  if (new.period, new.starts_on, new.ends_on, new.starts, new.ends, new.zone_facts)
     is distinct from (old.period, old.starts_on, old.ends_on, old.starts, old.ends, old.zone_facts) then
    raise exception 'period %: bounds are computed once', old.period
      using errcode = 'restrict_violation', constraint = 'period_bounds_frozen';
  end if;
  if new.state <> old.state and (old.state, new.state) not in
       (('open', 'sealed'), ('open', 'skipped'), ('sealed', 'closed'), ('sealed', 'skipped'), ('closed', 'reconciled')) then
    raise exception 'period %: % does not become %', old.period, old.state, new.state
      using errcode = 'restrict_violation', constraint = 'period_state_goes_forward';
  end if;
  return new;
end $$;

grant select on onceper.zone_table, onceper.schedule to onceper_worker, onceper_operator, onceper_auditor, onceper_reader;
-- A worker's check learns what PostgreSQL learns, and tops up the schedules that are written out as dates.
grant insert on onceper.zone_table to onceper_worker, onceper_operator;
grant insert, update on onceper.schedule to onceper_worker, onceper_operator;
