import { beforeEach, describe, expect, it } from 'vitest';
import { createRegistry } from '../../../src/jobs/registry.ts';
import { createSettlementJob } from '../../../src/jobs/settlement/settlement.ts';
import type { ApprovalKind } from '../../../src/kernel/approval.ts';
import type { Ask } from '../../../src/ops/approval/act.ts';
import { approveRequest, type Decided, executeApproval } from '../../../src/ops/approval/decide.ts';
import { requestApproval } from '../../../src/ops/approval/request.ts';
import { checkHolds } from '../../../src/ops/doctor-money.ts';
import { chosenHolds, listHolds } from '../../../src/ops/holds.ts';
import { actionByKey } from '../../../src/store/actions.ts';
import { transaction } from '../../../src/store/database.ts';
import { loadFirstRule } from '../../../src/store/rules.ts';
import { csv } from '../../jobs/settlement/rows.ts';
import { Bench, job, ruleWith } from '../../jobs/settlement/settling.ts';
import { executeRequest, forced } from '../../support/forced.ts';

const bench = Bench.forThisFile();
const rule = ruleWith();
const registry = createRegistry([createSettlementJob()]);
const parts = { registry, release: 'test' };
const KEY = 'settlement:2026-03';
const PAYOUT = `${KEY}:m-1:GBP:payout`;

const ask = (kind: ApprovalKind, asked: Ask) =>
  requestApproval(bench.db, parts, { kind, ask: asked, actor: 'user:ann', reason: 'by letter' });
async function decide({ approval: { id, digest } }: Awaited<ReturnType<typeof ask>>): Promise<Decided> {
  await approveRequest(bench.db, { token: null, id, digest, actor: 'user:bob', reason: null });
  return executeApproval(bench.db, parts, { token: null, id, actor: 'user:bob' });
}
const refusal = (act: Promise<unknown>) =>
  act.then(
    () => null,
    (error: { code: string }) => error.code,
  );

/** The last entries of the audit about a key or a number. */
async function audited(verb: string): Promise<unknown[]> {
  const { rows } = await bench.db.query<{ actor: string; key: string; subject: string | null; detail: string }>(
    'select actor, key, subject, detail from onceper.audit where verb = $1 order by seq desc limit 1',
    [verb],
  );
  return rows.map(({ detail, ...row }) => ({
    ...row,
    detail: typeof detail === 'string' ? (JSON.parse(detail) as object) : detail,
  }));
}

beforeEach(async () => {
  await bench.empty();
  await bench.db.query('truncate onceper.action, onceper.attempt, onceper.slice cascade');
  await loadFirstRule(bench.db, {
    job: 'settlement',
    body: { job: 'settlement', zone: 'UTC', first: '2026-01' },
    loadedBy: 'os:ann',
  });
  await bench.importText(csv('m-1 2026-03-01 10.00 GBP', 'm-2 2026-03-01 20.00 GBP', 'm-2 2026-04-01 1.00 GBP'));
  await bench.preparePeriods(rule);
  await bench.settleKey(rule, '2026-03');
  await bench.settleEffect(KEY, 'm-1', 'failed');
});

describe('several holds', () => {
  const other = `${KEY}:m-2:GBP:payout`;
  const chosen = (choice: Partial<Parameters<typeof chosenHolds>[1]>) =>
    chosenHolds({ db: bench.db, registry }, { job: 'settlement', key: null, code: null, subjects: null, ...choice });

  beforeEach(async () => {
    await bench.settleEffect(KEY, 'm-2', 'failed');
    await forced(
      bench.db,
      `insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence, code)
       values ($1, $2, 'm-1', 'payout', 'm-1', '{}', 1, 'account_closed') on conflict (number) do nothing`,
      [PAYOUT, KEY],
    );
  });

  it('are reported until a person releases them, by one request and one decision', async () => {
    expect(await checkHolds(bench.db, registry, 'settlement')).toMatchObject([
      { state: 'fail', detail: `the money of 2 payouts is on hold, of ${KEY}` },
    ]);
    const numbers = await chosen({ key: KEY });
    const asked = await ask('release_hold', { numbers: numbers.toReversed() });
    expect(asked.approval).toMatchObject({
      subject: `${PAYOUT} and 1 more`,
      plan: {
        holds: [
          { number: PAYOUT, amount: '1000' },
          { number: other, amount: '2000' },
        ],
      },
    });
    expect(await decide(asked)).toMatchObject({ kind: 'executed' });
    const { rows } = await bench.db.query(
      `select subject from onceper.audit where verb = 'release' order by seq desc limit 2`,
    );
    expect(rows).toEqual([{ subject: other }, { subject: PAYOUT }]);
    expect(await checkHolds(bench.db, registry, 'settlement')).toMatchObject([{ state: 'ok' }]);
  });

  it('are all released or none: one that another released meanwhile makes the request stale', async () => {
    const asked = await ask('release_hold', { numbers: [PAYOUT, other] });
    await decide(await ask('release_hold', { number: other }));
    await decide(asked).catch(() => undefined);
    expect(await chosen({})).toEqual([PAYOUT]);
  });

  it('are chosen by key, by code and by subject, and a subject with nothing on hold is told', async () => {
    expect(await chosen({ code: 'account_closed' })).toEqual([PAYOUT]);
    expect(await chosen({ subjects: ['m-2'] })).toEqual([other]);
    expect(await chosen({ key: KEY })).toEqual([PAYOUT, other]);
    expect(await refusal(chosen({ subjects: ['m-1', 'm-9'] }))).toBe('nothing_on_hold');
    expect(await refusal(chosen({ code: 'odd_word' }))).toBe('nothing_on_hold');
  });
});

describe('a hold', () => {
  it('is released by two people, once, and audited with its amount and the month that pays it', async () => {
    const asked = await ask('release_hold', { number: PAYOUT });
    expect(asked.approval.plan).toEqual({
      number: PAYOUT,
      subject: 'm-1',
      currency: 'GBP',
      amount: '1000',
      cause: 'failed',
    });
    expect((await ask('release_hold', { number: PAYOUT })).isNew).toBe(false);
    expect(await decide(asked)).toMatchObject({ kind: 'executed' });
    expect(await audited('release')).toMatchObject([
      { actor: 'user:bob', key: KEY, subject: PAYOUT, detail: { amount: '1000', settledBy: '2026-04' } },
    ]);
    expect(await refusal(ask('release_hold', { number: PAYOUT }))).toBe('nothing_on_hold');
    const about = { job: 'settlement', key: null, after: null, limit: 10 } as const;
    expect((await listHolds({ db: bench.db, registry }, { ...about, states: ['held'] })).holds).toEqual([]);
    expect((await listHolds({ db: bench.db, registry }, { ...about, states: ['released'] })).holds).toHaveLength(1);
  });

  it('that another has released since makes the approval stale', async () => {
    const asked = await ask('release_hold', { number: PAYOUT });
    await transaction(bench.db, {}, async (tx) => {
      await executeRequest(tx, 'release_hold', KEY, PAYOUT);
      await job.holds?.release(tx, { number: PAYOUT, actor: 'user:eve', reason: 'x' });
    });
    expect(await decide(asked)).toMatchObject({ kind: 'refused', code: 'world_moved' });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
  });
});

describe('an adjustment', () => {
  const postings = ['m-2:GBP:fees:250', 'm-1:GBP:clearing:-100'];

  it('is one document of its own that sends nothing; the next month settles it with each merchant', async () => {
    const asked = await ask('adjustment', { key: KEY, postings });
    expect(asked.approval.plan).toEqual({ key: `${KEY}:adj-1`, ruleVersion: 1, postings });
    expect((await ask('adjustment', { key: KEY, postings })).isNew).toBe(false);
    expect(await decide(asked)).toMatchObject({ kind: 'executed' });
    expect(await actionByKey(bench.db, `${KEY}:adj-1`)).toMatchObject({
      state: 'done',
      delivering: false,
      result: { document: { totals: { GBP: { assigned: '150' } } }, settledBy: '2026-04' },
    });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
    const { effects } = await bench.settle(rule, '2026-04');
    expect(effects.map(({ subject, body }) => [subject, (JSON.parse(body) as { amount: string }).amount])).toEqual([
      ['m-2', '350'],
    ]);
    expect(await bench.gaps()).toEqual({ GBP: 0n });
    expect(await audited('adjust')).toMatchObject([
      { actor: 'user:bob', key: `${KEY}:adj-1`, detail: { postings, reason: 'by letter' } },
    ]);
    expect((await ask('adjustment', { key: KEY, postings })).approval.plan).toMatchObject({ key: `${KEY}:adj-2` });
  });

  it('of a key that is not done, of a stranger, out of hold, of nothing or twice is refused before anybody is asked', async () => {
    const asking = (...words: string[]) => refusal(ask('adjustment', { key: KEY, postings: words }));
    expect(await refusal(ask('adjustment', { key: 'settlement:2026-04', postings }))).toBe('nothing_to_adjust');
    expect(await refusal(ask('adjustment', { key: `${KEY}:adj-1`, postings }))).toBe('nothing_to_adjust');
    expect(await asking('m-9:GBP:fees:1')).toBe('malformed_posting');
    expect(await asking('m-1:GBP:hold:1')).toBe('malformed_posting');
    expect(await asking('m-1:GBP:fees:0')).toBe('malformed_posting');
    expect(await asking('m-1:GBP:fees:1.50')).toBe('malformed_posting');
    expect(await asking('m-1:GBP:fees:1', 'm-1:GBP:cash:1')).toBe('malformed_posting');
    expect(await asking()).toBe('malformed_posting');
  });
});

describe('a skip', () => {
  it('closes the month for good, and the next one settles its rows, balances and releases once', async () => {
    await decide(await ask('release_hold', { number: PAYOUT }));
    const asked = await ask('skip', { key: 'settlement:2026-04' });
    expect(asked.approval.plan).toEqual({ key: 'settlement:2026-04', period: '2026-04', state: 'none', fence: '0' });
    expect(await decide(asked)).toMatchObject({ kind: 'executed' });
    expect(await actionByKey(bench.db, 'settlement:2026-04')).toMatchObject({ state: 'skipped' });
    expect(await bench.gaps()).toEqual({ GBP: 0n });
    const { effects } = await bench.settle(rule, '2026-05');
    expect(effects.map(({ number, body }) => [number, (JSON.parse(body) as { amount: string }).amount])).toEqual([
      ['settlement:2026-05:m-1:GBP:payout', '1000'],
      ['settlement:2026-05:m-2:GBP:payout', '100'],
    ]);
    expect(await bench.gaps()).toEqual({ GBP: 0n });
    const { rows } = await bench.db.query<{ origin: string }>(
      `select late_from as origin from settlement.transaction where period = '2026-05'`,
    );
    expect(rows).toEqual([{ origin: '2026-04' }]);
    expect(await audited('skip')).toMatchObject([{ actor: 'user:bob', key: 'settlement:2026-04' }]);
  });

  it('of a month that is done, or of an adjustment, is refused', async () => {
    expect(await refusal(ask('skip', { key: KEY }))).toBe('nothing_to_skip');
    expect(await refusal(ask('skip', { key: `${KEY}:adj-1` }))).toBe('nothing_to_skip');
  });
});
