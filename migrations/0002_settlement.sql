-- Purpose: schema settlement, the month-end job's own rows (ARCHITECTURE.md, "Settlement").
-- Lock cost: creates only; takes no lock on anything that exists.

create schema settlement;

-- A merchant is named by its source, never by a sequence: another import order gives the same ids.
create table settlement.merchant (
  id text collate "C" not null,
  source text not null,
  name text not null,
  first_seen_at timestamptz not null default clock_timestamp(),
  constraint merchant_pk primary key (id),
  constraint merchant_id_form check (id ~ '^[a-z0-9][a-z0-9-]*$')
);

-- A business period of the settlement job. Bounds are computed once, when the row is made.
create table settlement.period (
  period text not null,
  starts_on date not null,
  ends_on date not null,
  starts timestamptz not null,
  ends timestamptz not null,
  state text not null default 'open',
  sealed_by_fence bigint,
  sealed_at timestamptz,
  closed_at timestamptz,
  constraint period_pk primary key (period),
  constraint period_starts_once unique (starts),
  constraint period_runs_forward check (starts < ends and starts_on < ends_on),
  constraint period_state_known check (state in ('open', 'sealed', 'closed', 'reconciled', 'skipped')),
  constraint period_sealed_has_fence check (state in ('open', 'skipped') or sealed_by_fence is not null)
);

create table settlement.import (
  id bigint generated always as identity,
  source text not null,
  file text not null,
  sha256 text not null,
  rows bigint not null,
  added bigint not null,
  known bigint not null,
  late bigint not null,
  actor text not null,
  at timestamptz not null default clock_timestamp(),
  constraint import_pk primary key (id)
);

-- One transaction: positive is a sale, negative a refund. Its period is decided when it is stored.
create table settlement.transaction (
  source text not null,
  id text collate "C" not null,
  merchant text collate "C" not null,
  currency text not null,
  amount bigint not null,
  occurred_on date not null,
  occurred_at timestamptz,
  period text not null,
  late_from text,
  import_id bigint not null,
  constraint transaction_pk primary key (source, id),
  constraint transaction_currency_form check (currency ~ '^[A-Z]{3}$')
);

create index transaction_by_period on settlement.transaction (period, merchant) include (currency, amount);
create index transaction_by_import on settlement.transaction (import_id, period);

create function settlement.guard_transaction() returns trigger language plpgsql as $$
begin
  raise exception 'transaction % %: a stored transaction is not edited; send a correcting row with an id of its own', old.source, old.id
    using errcode = 'restrict_violation', constraint = 'transaction_immutable';
end $$;

create trigger transaction_immutable before update of source, id, merchant, currency, amount, occurred_on, occurred_at
  on settlement.transaction for each row execute function settlement.guard_transaction();
create trigger transaction_kept before delete on settlement.transaction
  for each row execute function settlement.guard_transaction();

-- A merchant's settlement of one currency in one document. Everything else of the period derives from it.
create table settlement.line (
  key text not null,
  merchant text collate "C" not null,
  currency text not null,
  period text not null,
  sales bigint not null,
  refunds bigint not null,
  fees bigint not null,
  net bigint not null,
  carry_in bigint not null,
  payout bigint not null,
  closing bigint not null,
  constraint line_pk primary key (key, merchant, currency),
  constraint line_net_adds_up check (net = sales - refunds - fees),
  constraint line_closing_adds_up check (closing = net + carry_in - payout),
  constraint line_payout_within_payable check (payout >= 0 and (payout = 0 or payout <= net + carry_in)),
  constraint line_parts_not_negative check (sales >= 0 and refunds >= 0 and fees >= 0)
);

-- One transfer between two accounts: it balances by construction. kind is unique a line, so nothing posts twice.
create table settlement.posting (
  key text not null,
  merchant text collate "C" not null,
  currency text not null,
  kind text not null,
  debit text not null,
  credit text not null,
  amount bigint not null,
  posted_at timestamptz not null default clock_timestamp(),
  constraint posting_pk primary key (key, merchant, currency, kind),
  constraint posting_amount_positive check (amount > 0),
  constraint posting_moves check (debit <> credit),
  constraint posting_accounts_known check (
    debit in ('clearing', 'payable', 'fees', 'in_transit', 'cash', 'hold')
    and credit in ('clearing', 'payable', 'fees', 'in_transit', 'cash', 'hold')),
  constraint posting_kind_known check (kind in ('sale', 'refund', 'fee', 'payout', 'paid', 'held', 'returned'))
);

-- The settlement document: one per key.
create table settlement.document (
  id text not null,
  key text not null,
  period text not null,
  totals jsonb not null,
  lines bigint not null,
  hash text not null,
  fence bigint not null,
  rule_version integer not null,
  closed_at timestamptz not null default clock_timestamp(),
  constraint document_pk primary key (id),
  constraint document_once_per_key unique (key)
);

create trigger document_immutable before update or delete on settlement.document
  for each row execute function onceper.refuse_change('document_immutable');
create trigger line_immutable before update or delete on settlement.line
  for each row execute function onceper.refuse_change('line_immutable');
create trigger posting_immutable before update or delete on settlement.posting
  for each row execute function onceper.refuse_change('posting_immutable');
