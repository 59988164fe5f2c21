-- Purpose: an import says how much its rows move, so that a start can tell, without reading a period, whether a sum might not fit.
-- Lock cost: ACCESS EXCLUSIVE on settlement.import for a moment; it reads settlement.transaction once (10 million rows: 3 s).

-- The magnitudes of the import's rows added up, in minor units of whatever currency. Null where an earlier release imports beside
-- this schema: the seal, which reads all rows, counts them itself. numeric: a file may hold what int8 can't.
alter table settlement.import add column magnitude numeric;
update settlement.import i set magnitude = t.magnitude
  from (select import_id, sum(abs(amount::numeric)) as magnitude from settlement.transaction group by import_id) t
 where t.import_id = i.id;
alter table settlement.import add constraint import_magnitude_not_negative check (magnitude >= 0);
