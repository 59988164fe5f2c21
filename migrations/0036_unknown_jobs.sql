-- Purpose: a run whose job or rule nobody knows yet waits without a key; it was refused for good, though another worker may know it.
-- Lock cost: ACCESS EXCLUSIVE on onceper.run while each of its rows is read once, about 0.2 s a million.

alter table onceper.run drop constraint run_without_key_is_refused;
alter table onceper.run add constraint run_without_key_owns_nothing check (key is not null or decision in ('refused', 'deferred'));
