import { beforeAll, expect, test } from 'vitest';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { approveRequest } from '../../src/ops/approval/decide.ts';
import { loadFirstRule } from '../../src/store/rules.ts';
import { csv } from '../jobs/settlement/rows.ts';
import { Bench, ruleWith } from '../jobs/settlement/settling.ts';
import { as, documentOf, type ErrorDocument, NOBODY, typed } from './command-line.ts';

const bench = Bench.forThisFile();
const KEY = 'settlement:2026-03';
const PAYOUT = `${KEY}:m-1:GBP:payout`;

beforeAll(async () => {
  const rule = ruleWith();
  await loadFirstRule(bench.db, {
    job: 'settlement',
    body: { job: 'settlement', zone: 'UTC', first: '2026-01' },
    loadedBy: 'os:ann',
  });
  await bench.importText(csv('m-1 2026-03-01 10.00 GBP', 'm-2 2026-03-01 20.00 GBP'));
  await bench.preparePeriods(rule);
  await bench.settleKey(rule, '2026-03');
  await bench.settleEffect(KEY, 'm-1', 'failed');
});

const options = { jobs: [createSettlementJob()] };
const environment = () => ({ DATABASE_URL: bench.url, TEMPORAL_ADDRESS: NOBODY });
const ann = async (...line: string[]) =>
  typed(line, { ...environment(), ...(await as('ann', 'operator', 'approver')) }, options);
const bob = async (...line: string[]) => typed(line, { ...environment(), ...(await as('bob', 'approver')) }, options);

interface Asked {
  readonly approval: { readonly id: string; readonly digest: string; readonly kind: string };
  readonly isNew: boolean;
}

test.each([
  { line: ['hold', 'release', PAYOUT], kind: 'release_hold', again: 'nothing_on_hold' },
  { line: ['adjust', KEY, '--posting', 'm-2:GBP:fees:250'], kind: 'adjustment', again: null },
  { line: ['skip', 'settlement:2026-04'], kind: 'skip', again: 'nothing_to_skip' },
])('$kind: a double click is one request, its asker may not approve it, another does it once', async (one) => {
  const line = [...one.line, '--reason', 'by letter', '--json'];
  const [first, second] = (await Promise.all([ann(...line), ann(...line)])).map((printed) =>
    documentOf<Asked>(printed),
  );
  expect([first, second].filter((asked) => asked?.isNew)).toHaveLength(1);
  expect(first?.approval).toMatchObject({ id: second?.approval.id, kind: one.kind });
  const approve = ['approvals', 'approve', first?.approval.id ?? '', '--digest', first?.approval.digest ?? ''];
  expect(await ann(...approve)).toMatchObject({ code: 3, err: expect.stringMatching(/^own_request/) });
  const clicks = await Promise.all([bob(...approve), bob(...approve)]);
  expect(clicks.map(({ code }) => code).toSorted((a, b) => a - b)).toEqual([0, 3]);
  expect(await bench.gaps()).toEqual({ GBP: 0n });
  if (one.again === null) return;
  const again = await ann(...line);
  expect([documentOf<ErrorDocument>(again).error.code, again.code]).toEqual([one.again, 3]);
});

test('hold list says what is on hold and what was released, by whom and to which month', async () => {
  expect(await ann('hold', 'list')).toMatchObject({ code: 0, out: 'nothing is on hold in these states\n' });
  const { out } = await ann('hold', 'list', '--state', 'held,released');
  expect(out).toContain(PAYOUT);
  expect(out).toMatch(/10\.00.*failed.*to 2026-0[45] by user:bob/);
  expect(await ann('hold', 'list', '--state', 'lost')).toMatchObject({ code: 2 });
});

test('a posting that is no posting is refused by its word, and nothing is asked', async () => {
  const printed = await ann('adjust', KEY, '--posting', 'm-1:GBP:fees:2.50', '--reason', 'x', '--json');
  expect(printed.code).toBe(2);
  expect(documentOf<ErrorDocument>(printed).error).toMatchObject({
    code: 'malformed_posting',
    at: 'm-1:GBP:fees:2.50',
  });
});

test('what was approved by a command that died before it was done names the command that does it', async () => {
  const line = ['skip', 'settlement:2026-05', '--reason', 'by letter', '--json'];
  const { id, digest } = documentOf<Asked>(await ann(...line)).approval;
  await approveRequest(bench.db, { token: null, id, digest, actor: 'user:bob', reason: null });
  expect(await bob('approvals', 'approve', id, '--digest', digest)).toMatchObject({
    code: 3,
    err: expect.stringMatching(new RegExp(`^already_decided: it is approved already.*approvals execute ${id}`)),
  });
  expect((await ann('approvals', 'show', id)).out).toContain(`npx onceper approvals execute ${id}`);
  expect(await bob('approvals', 'execute', id)).toMatchObject({ code: 0 });
  expect((await ann('approvals', 'show', id)).out).not.toContain('approvals execute');
});
