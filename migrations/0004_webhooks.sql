-- Purpose: webhooks from counterparties, what people did to effects, and the cleaning of old deliveries (ARCHITECTURE.md, "Effects").
-- Lock cost: creates, and replaces one trigger of onceper.delivery: a share row exclusive lock for as long as that takes.

-- One message of a counterparty, stored under its unique id before anything is decided about it: sent again it changes
-- nothing. `attention` waits for a person: an unknown number, a contradiction, or one that could not be applied.
create table onceper.webhook (
  id text collate "C" not null,
  type text not null,
  number text collate "C",
  body text not null,
  state text not null default 'stored',
  code text,
  tries integer not null default 0,
  due_at timestamptz not null default clock_timestamp(),
  received_at timestamptz not null default clock_timestamp(),
  decided_at timestamptz,
  constraint webhook_pk primary key (id),
  constraint webhook_state_known check (state in ('stored', 'applied', 'stale', 'ignored', 'attention')),
  constraint webhook_decided_has_time check ((state = 'stored') = (decided_at is null)),
  constraint webhook_attention_has_code check (state <> 'attention' or code is not null)
);

create index webhook_due on onceper.webhook (due_at) where state = 'stored';
create index webhook_by_number on onceper.webhook (number, received_at) where number is not null;
create index webhook_attention on onceper.webhook (received_at) where state = 'attention';

create function onceper.guard_webhook() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'webhook % is never deleted: sent again it must be recognised', old.id
      using errcode = 'restrict_violation', constraint = 'webhook_never_deleted';
  end if;
  raise exception 'webhook %: what was received is frozen', old.id
    using errcode = 'restrict_violation', constraint = 'webhook_frozen';
end $$;

create trigger webhook_frozen before update of id, type, number, body, received_at on onceper.webhook
  for each row execute function onceper.guard_webhook();
create trigger webhook_kept before delete on onceper.webhook
  for each row execute function onceper.guard_webhook();

-- What a person did to an effect: who, why, and from which state to which. Append only. The fence is the one after the act.
create table onceper.outbox_act (
  number text collate "C" not null,
  fence bigint not null,
  verb text not null,
  from_state text not null,
  to_state text not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default clock_timestamp(),
  constraint outbox_act_pk primary key (number, fence),
  constraint outbox_act_verb_known check (verb in ('retry', 'resolve')),
  constraint outbox_act_is_signed check (actor <> '' and reason <> '')
);

create trigger outbox_act_append_only before update or delete on onceper.outbox_act
  for each row execute function onceper.refuse_change('outbox_act_append_only');

-- A delivery is evidence, and nothing is recognised by it: the number stays in the outbox. So the cleaner, and nobody who has
-- not said so in this transaction, may delete those of effects whose fate is known.
create function onceper.guard_delivery() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' and coalesce(current_setting('onceper.cleaning', true), '') = 'on'
     and exists (select from onceper.outbox o
                  where o.number = old.number and o.state in ('succeeded', 'failed', 'returned')) then
    return old;
  end if;
  raise exception 'onceper.delivery is append only: % refused', tg_op
    using errcode = 'restrict_violation', constraint = 'delivery_append_only';
end $$;

drop trigger delivery_append_only on onceper.delivery;
create trigger delivery_append_only before update or delete on onceper.delivery
  for each row execute function onceper.guard_delivery();
