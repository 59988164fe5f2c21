-- Purpose: what a webhook says otherwise than its effect, in words, beside the code of its decision (ARCHITECTURE.md, "Effects").
-- Lock cost: ACCESS EXCLUSIVE on onceper.webhook for a moment; no row is read.

-- Amounts in minor units. Null where nothing differs, and in rows that an earlier release decided.
alter table onceper.webhook add column detail text;
