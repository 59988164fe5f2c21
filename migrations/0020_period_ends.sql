-- Purpose: when the period of a key ended, so that a relay can tell how long its numbers may have been in use (ARCHITECTURE.md, "Effects").
-- Lock cost: ACCESS EXCLUSIVE on onceper.action for a moment; no row is read or rewritten.

-- Written by close, with the effects becoming deliverable. Null where a release before this one closed the key: then it is not
-- known how old its numbers are, and each is looked up before it is sent.
alter table onceper.action add column period_ends timestamptz;

-- A later end would let a number be sent without a look-up that may have been used long ago.
create trigger action_period_end_fixed before update of period_ends on onceper.action
  for each row when (old.period_ends is not null and new.period_ends is distinct from old.period_ends)
  execute function onceper.refuse_change('action_period_end_fixed');
