-- Purpose: effects that are told to others and move no money, and effects that wait for an earlier one (ARCHITECTURE.md, "Effects").
-- Lock cost: ACCESS EXCLUSIVE on onceper.outbox while its rows are read once, about half a second a million.

-- waits_for is the number of the effect that must have its fate first; null, as a rule, waits for none and costs nothing.
-- XXX is ISO 4217's code where no currency is involved: what goes to a webhook moves no money, and nothing else carries it.
alter table onceper.outbox
  add column waits_for text collate "C",
  add constraint outbox_webhook_moves_no_money
    check (starts_with(destination, 'webhook:') = (strpos(number, ':XXX:') > 0));

-- Only an effect that stands there already can be waited for, and it is frozen: so no two ever wait for each other.
create function onceper.guard_waits_for() returns trigger language plpgsql as $$
begin
  if not exists (select from onceper.outbox earlier
                  where earlier.number = new.waits_for
                    and earlier.subject = new.subject and earlier.destination = new.destination) then
    raise exception 'effect % waits for %, which is no earlier effect of its subject and destination', new.number, new.waits_for
      using errcode = 'check_violation', constraint = 'outbox_waits_for_its_subject';
  end if;
  return new;
end $$;

create trigger outbox_waits_for before insert on onceper.outbox
  for each row when (new.waits_for is not null) execute function onceper.guard_waits_for();

drop trigger outbox_frozen on onceper.outbox;
create trigger outbox_frozen before update of number, key, subject, effect, destination, body, waits_for on onceper.outbox
  for each row execute function onceper.guard_outbox();
