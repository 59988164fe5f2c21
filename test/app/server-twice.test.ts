import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NEEDS } from '../../src/app/permissions.ts';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { openDatabase } from '../../src/store/database.ts';
import { insert } from '../store/by-hand-rows.ts';
import { createTestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { createTestNamespace } from '../support/namespace.ts';
import { as, type Printed, typed } from './command-line.ts';
import { MONTHLY_JOB, type Served, serve } from './served.ts';

const KEY = 'settlement:2026-09';
const DONE = 'settlement:2026-08';
const NUMBER = `${DONE}:m-1:GBP:payout`;
const AT = '2026-10-01T00:00:00Z';
const PAINT = '\u001b[31mred\u001b[0m';
const jobs = [createSettlementJob()];

const LEDGER = [
  ...MONTHLY_JOB,
  insert('onceper.run'),
  insert('onceper.action'),
  insert('onceper.action', {
    key: DONE,
    period: '2026-08',
    state: 'done',
    fence: 1,
    result: JSON.stringify({ document: { id: 'doc' } }),
    done_at: AT,
  }),
  insert('onceper.attempt', { ended_at: AT, outcome: 'failed', code: PAINT }),
  insert('onceper.slice'),
  insert('onceper.outbox', { state: 'needs_attention' }),
  insert('onceper.approval', {
    id: 'a-1',
    reason: PAINT,
    state: 'requested',
    decided_by: null,
    decided_at: null,
    executed_by: null,
    executed_at: null,
    expires_at: '2126-10-08T00:00:00Z',
  }),
  insert('settlement.merchant'),
];

/** One ledger that is driven here, and one that is driven through the server. */
interface Side {
  readonly variables: Readonly<Record<string, string>>;
  readonly drop: () => Promise<void>;
}

let here: Side;
let there: Side;
let served: Served;
let folder: string;

async function createSide(): Promise<Side & { readonly variables: { readonly DATABASE_URL: string } }> {
  const database = await createTestDatabase();
  const db = openDatabase({ url: database.url, name: 'test', max: 1 });
  for (const { text, values } of LEDGER) await forced(db, text, values);
  await db.close();
  const { address, namespace } = await createTestNamespace();
  const variables = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
  return { variables, drop: database.drop };
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'onceper-twice-'));
  here = await createSide();
  const side = await createSide();
  served = await serve(side.variables, { jobs });
  // The one who types knows neither database nor Temporal.
  there = { ...side, variables: { ONCEPER_SERVER: served.url } };
});

afterAll(async () => {
  await served.stop();
  await here.drop();
  await there.drop();
  rmSync(folder, { recursive: true, force: true });
});

function file(name: string, text: string): string {
  const at = path.join(folder, name);
  writeFileSync(at, text);
  return at;
}

const ROWS = 'id,merchant,name,date,amount,currency\n';
const rows = () => file('rows.csv', `${ROWS}t-1,m-1,M,2026-09-02,10.00,GBP\n`);
const wrong = () => file('wrong.csv', `${ROWS}t-2,m-1,M,yesterday,10.00,GBP\n`);
const log = () => file('worker.log', `${JSON.stringify({ seq: '1', hash: 'f'.repeat(64), at: AT })}\n`);

type Line = readonly string[];

/** Every command that the server performs, done and refused; a line is made when its turn comes. */
const LINES: Readonly<Record<string, readonly (() => Line)[]>> = {
  periods: [() => ['periods', 'settlement'], () => ['periods', 'nope']],
  show: [() => ['show', KEY], () => ['show', DONE], () => ['show', 'settlement:2031-01']],
  why: [() => ['why', KEY], () => ['why', DONE], () => ['why', '--', '-x']],
  'destination list': [() => ['destination', 'list']],
  'destination resume': [
    () => ['destination', 'resume', 'accounts', '--reason', PAINT],
    () => ['destination', 'resume', 'nowhere', '--reason', 'r'],
  ],
  effects: [() => ['effects', DONE], () => ['effects', DONE, '--limit', '0']],
  doctor: [() => ['doctor'], () => ['doctor', '--reconcile-rewind']],
  'audit list': [() => ['audit', 'list'], () => ['audit', 'list', '--verb', 'nothing']],
  'audit verify': [
    () => ['audit', 'verify'],
    () => ['audit', 'verify', '--anchor', log()],
    () => ['audit', 'verify', '--anchor', '/nowhere.log'],
  ],
  'schedule apply': [() => ['schedule', 'apply', 'settlement'], () => ['schedule', 'apply', 'nope']],
  'schedule list': [() => ['schedule', 'list'], () => ['schedule', 'list', 'nope']],
  'schedule preview': [() => ['schedule', 'preview', 'settlement', '--count', '3', '--from', '2026-09']],
  'schedule pause': [() => ['schedule', 'pause', 'settlement', '--reason', '--as it is']],
  'schedule resume': [() => ['schedule', 'resume', 'settlement', '--reason', PAINT]],
  'outbox list': [() => ['outbox', 'list'], () => ['outbox', 'list', '--state', 'gone']],
  'outbox show': [() => ['outbox', 'show', NUMBER], () => ['outbox', 'show', 'nope']],
  'hold list': [() => ['hold', 'list']],
  'hold release': [() => ['hold', 'release', NUMBER, '--reason', 'x']],
  'backfill request': [
    () => ['backfill', 'request', 'settlement', '--from', '2026-10', '--to', '2026-11', '--reason', 'missed'],
    () => ['backfill', 'request', 'settlement', '--from', '2026-11', '--to', '2026-10', '--reason', 'missed'],
  ],
  'backfill list': [() => ['backfill', 'list']],
  'backfill show': [() => ['backfill', 'show', 'nope']],
  'backfill cancel': [() => ['backfill', 'cancel', 'nope', '--reason', 'x']],
  'approvals list': [() => ['approvals', 'list'], () => ['approvals', 'list', '--limit', 'x']],
  'approvals show': [() => ['approvals', 'show', 'a-1'], () => ['approvals', 'show', 'nope']],
  'approvals edit': [() => ['approvals', 'edit', 'nope', '--reason', 'x']],
  'approvals approve': [() => ['approvals', 'approve', 'a-1', '--digest', 'f'.repeat(64)]],
  'approvals execute': [() => ['approvals', 'execute', 'a-1']],
  'approvals reject': [() => ['approvals', 'reject', 'a-1', '--reason', 'no'], () => ['approvals', 'reject', 'a-1']],
  takeover: [() => ['takeover', KEY, '--reason', 'gone'], () => ['takeover', DONE, '--reason', 'gone']],
  skip: [() => ['skip', KEY, '--reason', 'moved'], () => ['skip', KEY]],
  adjust: [() => ['adjust', DONE, '--posting', 'm-1:GBP:fees:250', '--posting', 'm-1:GBP:cash:-1', '--reason', 'w']],
  import: [
    () => ['import', rows(), '--source', 'generic'],
    () => ['import', wrong(), '--source', 'generic'],
    () => ['import', rows(), '--source', 'nope'],
    () => ['import', '/nowhere.csv', '--source', 'generic'],
  ],
  run: [
    () => ['run', 'settlement', '--period', '2026-08', '--within', '100ms'],
    () => ['run', 'settlement', '--period', '2026-08', '--set', 'x=1', '--set', 'y=2'],
    () => ['run', '--release', 'run-1', '--reason', 'x'],
    () => ['run'],
  ],
  'outbox retry': [() => ['outbox', 'retry', NUMBER, '--reason', 'again']],
  'outbox resolve': [() => ['outbox', 'resolve', NUMBER, '--as', 'failed', '--reason', 'a letter']],
  'outbox clean': [() => ['outbox', 'clean', '--older-than', '90d'], () => ['outbox', 'clean', '--older-than', '1h']],
};

const CASES = Object.entries(LINES).flatMap(([name, lines]) => lines.map((line, at) => ({ name, at, line })));

/** What differs between any two ledgers and any two moments: ids that are drawn, hashes, instants, addresses, sizes, ages. */
function timeless(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/[0-9a-f]{64}/g, '<hash>')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00)?/g, '<at>')
    .replaceAll(/test_[0-9a-z_-]+|ns-[0-9a-z-]+/g, '<name>')
    .replaceAll(/\d+(\.\d+)? (kB|MB|GB|ms|seconds?)/g, '<size>')
    .replaceAll(/"ageMs":[\d.]+/g, '"ageMs":0')
    .replaceAll(/ +/g, ' ');
}

async function printed(side: Side, line: Line, isTerminal: boolean): Promise<Printed> {
  const given = { ...(await as('ann', 'viewer', 'operator', 'approver')), ...side.variables };
  const { code, out, err } = await typed(line, given, { jobs, isTerminal });
  return { code, out: timeless(out), err: timeless(err) };
}

test.each(CASES)('$name prints the same through the server and without it ($at)', async ({ line }) => {
  for (const [words, isTerminal] of [
    [line(), true],
    [[...line(), '--json'], false],
  ] as const) {
    const direct = await printed(here, words, isTerminal);
    expect(await printed(there, words, isTerminal)).toEqual(direct);
    expect(direct.out + direct.err).not.toBe('');
    expect(direct.err).not.toContain('unexpected');
  }
});

test('every command that has a role is compared', () => {
  const served_ = Object.entries(NEEDS).filter(([, needs]) => needs !== 'anyone');
  expect(Object.keys(LINES).toSorted()).toEqual(served_.map(([name]) => name).toSorted());
});

test('what others wrote in colours reaches a terminal written out, and our colours reach it', async () => {
  const { out } = await printed(there, ['why', KEY], true);
  expect(out).toContain('\\u{1b}[31mred');
  expect(out).not.toContain('\u001b[31mred');
  expect(out).toContain('\u001b[1m');
});
