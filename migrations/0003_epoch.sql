-- Purpose: what is remembered outside to recognise a rewound database, and the freeze that follows (ARCHITECTURE.md, "A rewound database").
-- Lock cost: creates only; takes no lock on anything that exists.

-- One row. epoch grows with each look; system identifier and timeline are the server's own. A restore or a failover that lost
-- commits makes one of them fall behind what was remembered outside.
create table onceper.epoch (
  one boolean not null default true,
  epoch bigint not null default 0,
  looked_at timestamptz not null default clock_timestamp(),
  frozen_at timestamptz,
  frozen_reason text,
  constraint epoch_pk primary key (one),
  constraint epoch_one_row check (one),
  constraint epoch_freeze_has_reason check ((frozen_at is null) = (frozen_reason is null))
);

insert into onceper.epoch default values;

create function onceper.guard_epoch() returns trigger language plpgsql as $$
begin
  if new.epoch < old.epoch then
    raise exception 'the epoch may not fall from % to %', old.epoch, new.epoch
      using errcode = 'check_violation', constraint = 'epoch_never_falls';
  end if;
  return new;
end $$;

create trigger epoch_guard before update on onceper.epoch for each row execute function onceper.guard_epoch();
create trigger epoch_kept before delete on onceper.epoch for each row execute function onceper.refuse_change('epoch_kept');
