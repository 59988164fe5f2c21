-- Purpose: who asks for a run, and what they state, written before Temporal hears of it: what comes through Temporal says nothing
-- about people (ARCHITECTURE.md, "Identity").
-- Lock cost: creates only; takes no lock on anything that exists.

-- One intent, under the id that its run will have. No foreign key to run: that is opened later, and a deduplicated start never.
create table onceper.intent (
  start_id text not null,
  job text not null,
  scheduled_at timestamptz not null,
  actor text not null,
  overrides jsonb not null,
  at timestamptz not null default clock_timestamp(),
  constraint intent_pk primary key (start_id),
  constraint intent_of_job foreign key (job) references onceper.job (job),
  constraint intent_actor_form check (actor ~ '^[^[:space:]]{1,200}$' and actor !~ '[A-Z]'),
  constraint intent_overrides_are_texts check (jsonb_typeof(overrides) = 'object')
);

create trigger intent_append_only before update or delete on onceper.intent
  for each row execute function onceper.refuse_change('intent_append_only');

grant select on onceper.intent to onceper_worker, onceper_operator, onceper_auditor, onceper_reader;
grant select, insert on onceper.intent to onceper_server, onceper_break_glass;
