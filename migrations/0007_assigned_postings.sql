-- Purpose: money on hold is released, and with manual postings adds to what a later period pays (ARCHITECTURE.md, "Settlement").
-- Lock cost: ACCESS EXCLUSIVE on settlement.line for a moment, and on settlement.posting while its rows are read twice.

-- The postings of people that a period settles beside its transactions. A release names its payout by key, merchant and
-- currency, so a payout is released once; a manual one names its adjustment. period is decided when the row is stored, as a
-- transaction's is. account is where the money comes from: a positive amount goes from it to payable, a negative one back.
create table settlement.assigned_posting (
  key text collate "C" not null,
  merchant text collate "C" not null,
  currency text collate "C" not null,
  kind text not null,
  account text not null,
  amount bigint not null,
  period text collate "C" not null,
  actor text not null,
  reason text not null,
  at timestamptz not null default clock_timestamp(),
  constraint assigned_posting_pk primary key (key, merchant, currency, kind),
  constraint assigned_posting_kind_known check (kind in ('release', 'manual')),
  constraint assigned_posting_manual_is_adjustment check ((kind = 'manual') = (key ~ ':adj-[1-9][0-9]*$')),
  constraint assigned_posting_account_of_kind check (
    case kind when 'release' then account = 'hold' when 'manual' then account in ('clearing', 'fees', 'cash') else true end),
  constraint assigned_posting_amount_moves check (amount > 0 or (kind = 'manual' and amount < 0)),
  constraint assigned_posting_currency_form check (currency ~ '^[A-Z]{3}$'),
  constraint assigned_posting_is_signed check (actor <> '' and reason <> '')
);

create index assigned_posting_by_period on settlement.assigned_posting (period, merchant) include (currency, amount);

-- What is on hold, without walking what was paid.
create index posting_held on settlement.posting (key, merchant, currency) include (amount, kind) where kind in ('held', 'returned');

create function settlement.guard_assigned_posting() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    raise exception 'assigned posting % % % %: a stored one is neither edited nor deleted', old.kind, old.key, old.merchant, old.currency
      using errcode = 'restrict_violation', constraint = 'assigned_posting_immutable';
  end if;
  if new.kind = 'release' and not exists (
       select from settlement.posting p
        where p.key = new.key and p.merchant = new.merchant and p.currency = new.currency and p.kind in ('held', 'returned')
          and p.amount = new.amount) then
    raise exception 'payout %:%:%: that amount of it is not on hold', new.key, new.merchant, new.currency
      using errcode = 'restrict_violation', constraint = 'assigned_posting_releases_a_hold';
  end if;
  return null;
end $$;

-- After the row's own checks.
create trigger assigned_posting_guard after insert on settlement.assigned_posting
  for each row execute function settlement.guard_assigned_posting();
-- Its period alone may change: where that period is skipped it moves on to the next.
create trigger assigned_posting_immutable
  before update of key, merchant, currency, kind, account, amount, actor, reason, at on settlement.assigned_posting
  for each row execute function settlement.guard_assigned_posting();
create trigger assigned_posting_kept before delete on settlement.assigned_posting
  for each row execute function settlement.guard_assigned_posting();

-- released: hold → payable, of the payout that was held. manual: between payable and the account of its adjustment.
alter table settlement.posting drop constraint posting_kind_known;
alter table settlement.posting add constraint posting_kind_known
  check (kind in ('sale', 'refund', 'fee', 'payout', 'paid', 'held', 'returned', 'released', 'manual'));

-- The part of carry_in that postings of people brought.
alter table settlement.line add column assigned bigint not null default 0;
