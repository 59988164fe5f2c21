import type { Tx } from '../../src/kernel/sql.ts';

type Value = string | number | boolean | null;
type Row = Readonly<Record<string, Value>>;

/** One statement as a hand would type it. */
export interface Statement {
  readonly text: string;
  readonly values: readonly Value[];
}

const NOW = '2026-10-01T00:00:00Z';
const KEY = 'settlement:2026-09';
const DONE = 'settlement:2026-08';
const NUMBER = `${DONE}:m-1:GBP:payout`;

/** A row of each table that is legal as it stands, in the order in which they may be inserted. */
const ROWS = {
  'onceper.rule': { job: 'settlement', version: 1, body: '{"period":"month"}', loaded_by: 'os:ann' },
  'onceper.job': { job: 'settlement', active_rule: 1 },
  'onceper.zone_table': {
    job: 'settlement',
    version: 1,
    zone: 'UTC',
    source: 'PostgreSQL 18',
    digest: 'a'.repeat(64),
    changes: '{0}',
    aheads: '{0}',
    adopted_by: 'os:ann',
  },
  'onceper.schedule': { job: 'settlement', plan: 'a digest', applied_by: 'os:ann' },
  'onceper.one_off': { job: 'settlement', at: NOW, reason: 'asked for', actor: 'os:ann' },
  'onceper.audit': {
    actor: 'os:ann',
    verb: 'release',
    job: 'settlement',
    key: KEY,
    run: 'run-1',
    detail: '{}',
  },
  'onceper.run': {
    start_id: 'run-1',
    job_id: 'settlement',
    scheduled_at: NOW,
    repeat_of: null,
    trigger: 'schedule',
    actor: 'schedule:settlement',
    period: '2026-09',
    key: KEY,
    decision: 'admitted',
    released_by: null,
  },
  'onceper.action': {
    key: KEY,
    job: 'settlement',
    period: '2026-09',
    adj: null,
    state: 'running',
    fence: 2,
    owner_run: 'run-1',
    owner_exec: 'e-1',
    owner_pass: 2,
    lease_until: NOW,
    fingerprint: '-',
    overrides: '{}',
    rule_version: 1,
    release: 'test',
    delivering: false,
    result: null,
    done_at: null,
    skipped_reason: null,
  },
  'onceper.attempt': {
    run: 'run-1',
    number: 1,
    key: KEY,
    execution: 'e-1',
    pass: 2,
    fence: 2,
    release: 'test',
    ended_at: null,
    outcome: null,
    code: null,
  },
  'onceper.slice': {
    key: KEY,
    slice: 1,
    first_subject: 'm-1',
    last_subject: 'm-2',
    fence: 2,
    done_at: NOW,
    result: '{}',
  },
  'onceper.outbox': {
    number: NUMBER,
    key: DONE,
    subject: 'm-1',
    effect: 'payout',
    destination: 'm-1',
    body: '{}',
    written_by_fence: 1,
    state: 'sending',
    attempts: 1,
    first_sent_at: NOW,
    counterparty_id: null,
  },
  'onceper.delivery': { number: NUMBER, fence: 1, step: 'send', request_hash: '-', outcome: 'unknown' },
  'onceper.item': { key: 'a', request_hash: `\\x${'00'.repeat(32)}` },
  'onceper.item_result': { key: 'a', result: '{}' },
  'settlement.merchant': { id: 'm-1', source: 'generic', name: 'Blue Door Books' },
  'settlement.period': {
    period: '2026-08',
    starts_on: '2026-08-01',
    ends_on: '2026-09-01',
    starts: '2026-08-01T00:00:00Z',
    ends: '2026-09-01T00:00:00Z',
    state: 'closed',
    sealed_by_fence: 1,
    sealed_totals: '{}',
    closed_at: NOW,
  },
  'settlement.import': {
    source: 'generic',
    file: 'a.csv',
    sha256: '-',
    rows: 3,
    added: 2,
    known: 1,
    late: 0,
    actor: 'os:ann',
    currencies: '{GBP}',
  },
  'settlement.transaction': {
    source: 'generic',
    id: 't-1',
    merchant: 'm-1',
    currency: 'GBP',
    amount: 1000,
    occurred_on: '2026-08-03',
    period: '2026-08',
    import_id: 1,
  },
  'settlement.line': {
    key: DONE,
    merchant: 'm-1',
    currency: 'GBP',
    period: '2026-08',
    transactions: 1,
    sales: 1000,
    refunds: 0,
    fees: 20,
    net: 980,
    carry_in: 0,
    payout: 980,
    closing: 0,
  },
  'onceper.webhook': { id: 'msg_1', type: 'transfer.succeeded', number: null, body: '{}' },
  'onceper.outbox_act': {
    number: `${DONE}:m-1:GBP:payout`,
    fence: 3,
    verb: 'retry',
    from_state: 'dead',
    to_state: 'pending',
    actor: 'os:ann',
    reason: 'the account is open again',
  },
  'onceper.approval': {
    id: 'a-1',
    kind: 'late_run',
    subject: 'run-1',
    job: 'settlement',
    key: KEY,
    ask: '{"run":"run-1"}',
    reason: 'the bank was closed',
    plan: '{}',
    digest: '0'.repeat(64),
    state: 'executed',
    requested_by: 'os:ann',
    edited_by: 'os:ann',
    expires_at: '2026-10-08T00:00:00Z',
    decided_by: 'os:bob',
    decided_at: NOW,
    executed_by: 'os:bob',
    executed_at: NOW,
    stale_reason: null,
  },
  'onceper.intent': {
    start_id: 'start-1',
    job: 'settlement',
    scheduled_at: '2026-10-01T02:00:00Z',
    actor: 'user:ann',
    overrides: '{}',
  },
  'onceper.decision_proof': {
    approval: 'a-1',
    revision: 1,
    verb: 'approve',
    actor: 'os:bob',
    token: null,
    expires_at: null,
    login_as: 'owner',
  },
  'onceper.waiver': { run: 'run-1', code: 'late', fence: 0, approval: 'a-1' },
  'onceper.backfill': {
    id: 'a-1',
    job: 'settlement',
    most_active: 2,
    actor: 'os:ann',
    reason: 'two months were missed',
    cancelled_by: null,
  },
  'onceper.backfill_period': {
    backfill: 'a-1',
    ordinal: 1,
    period: '2026-09',
    key: KEY,
    start_id: 'a-1-2026-09',
    scheduled_at: NOW,
    act: 'run',
    state: 'waiting',
    started_at: null,
    ended_at: null,
    outcome: null,
  },
  'settlement.posting': {
    key: DONE,
    merchant: 'm-1',
    currency: 'GBP',
    kind: 'paid',
    debit: 'in_transit',
    credit: 'cash',
    amount: 980,
  },
  'settlement.assigned_posting': {
    key: 'settlement:2026-08:adj-1',
    merchant: 'm-1',
    currency: 'GBP',
    kind: 'manual',
    account: 'fees',
    amount: 20,
    period: '2026-09',
    actor: 'os:ann',
    reason: 'the fee was agreed away',
  },
  'settlement.document': {
    id: 'doc-1',
    key: DONE,
    period: '2026-08',
    totals: '{}',
    lines: 1,
    hash: '-',
    fence: 1,
    rule_version: 1,
  },
} as const satisfies Readonly<Record<string, Row>>;

/** A done action beside the running one, which owns the effect, the line and the document. */
export const DONE_ACTION = {
  key: DONE,
  period: '2026-08',
  state: 'done',
  fence: 1,
  result: '{"document":{"id":"doc-1"}}',
  done_at: NOW,
  period_ends: '2026-09-01T00:00:00Z',
};

/** The table's legal row with some columns changed, as an insert. */
export function insert(table: keyof typeof ROWS, changes: Row = {}): Statement {
  const row: Row = { ...ROWS[table], ...changes };
  const columns = Object.keys(row);
  const places = columns.map((_, at) => `$${at + 1}`).join(', ');
  return { text: `insert into ${table} (${columns.join(', ')}) values (${places})`, values: Object.values(row) };
}

/** A statement without values. */
export function typed(text: string): Statement {
  return { text, values: [] };
}

/** Stores one legal row in every table, in whatever state: no trigger asks how it came there. */
export async function storeLegalRows(tx: Tx): Promise<void> {
  for (const table of Object.keys(ROWS) as (keyof typeof ROWS)[]) {
    const { text, values } = insert(table);
    // An entry of the audit is made whole by its trigger.
    await tx.query(`set local session_replication_role = ${table === 'onceper.audit' ? 'origin' : 'replica'}`);
    await tx.query(text, values);
    if (table !== 'onceper.action') continue;
    const done = insert(table, DONE_ACTION);
    await tx.query(done.text, done.values);
  }
}
