-- Purpose: which destinations are paused, since when and why, for all relays (ARCHITECTURE.md, "Effects").
-- Lock cost: creates only; takes no lock on anything that exists. The role belongs to the whole server: one that is there is kept.

-- 'accounts' is the counterparty of money, all of it: what pauses it is an answer about us. While it is paused nothing is taken
-- for it but one effect at each probe_at; probes counts them, and status and code are the latest such answer. An older release
-- does not read this table, and goes on sending: what it is answered fails its payouts as before.
create table onceper.destination (
  name text collate "C" not null,
  state text not null default 'open',
  since timestamptz not null default clock_timestamp(),
  code text,
  status integer,
  probes integer not null default 0,
  probe_at timestamptz,
  constraint destination_pk primary key (name),
  constraint destination_state_known check (state in ('open', 'paused')),
  constraint destination_paused_has_cause
    check ((state = 'paused') = (code is not null and status is not null and probe_at is not null)),
  constraint destination_code_form check (code ~ '^[[:alnum:]_.-]{1,64}$'),
  constraint destination_probes_not_negative check (probes >= 0)
);

insert into onceper.destination (name) values ('accounts');

grant select on onceper.destination
  to onceper_worker, onceper_server, onceper_break_glass, onceper_operator, onceper_auditor, onceper_reader;
grant insert, update on onceper.destination to onceper_worker;
grant update on onceper.destination to onceper_server, onceper_break_glass;
