-- Purpose: a slice reads its transactions in the order of its lines, and an import says which currencies it brought.
-- Lock cost: the index is built while imports wait (10 million rows: 15 s on two cores); the column is added without a rewrite.

-- With the currency as a key column a slice's rows arrive grouped as its lines are: no sort (10 million rows: 3.3 s for 5.6 s).
create index transaction_by_merchant on settlement.transaction (period, merchant, currency) include (amount);
drop index settlement.transaction_by_period;

-- What the import's rows have for currencies, so that a start needn't read a whole period to find one without fees.
alter table settlement.import add column currencies text[];
update settlement.import i
   set currencies = coalesce((select array_agg(distinct t.currency order by t.currency)
                                from settlement.transaction t where t.import_id = i.id), '{}');
alter table settlement.import alter column currencies set not null;

-- Before it admits a month the worker asks which currencies there are.
grant select on settlement.import to onceper_worker;
