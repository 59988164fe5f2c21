-- Purpose: jobs whose unit is one item: each is done once under its own key, by one statement (docs/once.md).
-- Lock cost: creates only; takes no lock on anything that exists.

-- One item that was won. The primary key is the promise: whoever inserts second waits for the first's transaction, and then
-- finds its row. Nothing else stands on the insert's path: no trigger, no foreign key, no second index. `result` is what was
-- known when the key was won; null where it was only known afterwards, and stands in item_result.
create table onceper.item (
  key text collate "C" not null,
  request_hash bytea not null,
  result jsonb,
  done_at timestamptz not null default clock_timestamp(),
  constraint item_pk primary key (key),
  constraint item_key_form check (key <> '' and octet_length(key) <= 500),
  constraint item_request_hash_form check (octet_length(request_hash) = 32)
);

-- The result of an item that its own work made, written in the item's transaction. A table of its own, because one statement
-- can't both insert a row and change it. No foreign key: both rows come from one statement or one transaction.
create table onceper.item_result (
  key text collate "C" not null,
  result jsonb not null,
  constraint item_result_pk primary key (key)
);

-- Before update, delete and truncate only: an insert never meets them.
create trigger item_append_only before update or delete on onceper.item
  for each row execute function onceper.refuse_change('item_append_only');
create trigger item_never_truncated before truncate on onceper.item
  for each statement execute function onceper.refuse_change('item_never_truncated');
create trigger item_result_append_only before update or delete on onceper.item_result
  for each row execute function onceper.refuse_change('item_result_append_only');
create trigger item_result_never_truncated before truncate on onceper.item_result
  for each statement execute function onceper.refuse_change('item_result_never_truncated');

grant select, insert on onceper.item, onceper.item_result to onceper_worker;
grant select on onceper.item, onceper.item_result to onceper_operator, onceper_auditor, onceper_reader;
