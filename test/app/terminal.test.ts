import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NEEDS } from '../../src/app/permissions.ts';
import { colours, linesOf, shown } from '../../src/app/terminal.ts';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { insert } from '../store/by-hand-rows.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { as, type Printed, typed } from './command-line.ts';

/** Erases the line, sets the title, overprints, turns the text round and hides a part of it. */
const HIDDEN = '\u001b[0j\u001b]0;owned\u0007\u009b31m\u007f\u202e\u2066\u200f\u061c\u200b\ufeff';
const POISON = `x${HIDDEN}\r\u2028\n  digest    forged`;
/** A colour of ours, as a terminal gets it. */
const COLOUR = new RegExp(String.raw`${'\u001b'}\[\d{1,2}m`, 'g');
/** The doctor looks some years ahead of now, which differs between two looks. */
const SECONDS = /:\d\d\.\d+Z/g;
const RAW = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

const KEY = 'settlement:2026-09';
const DONE = 'settlement:2026-08';
const NUMBER = `${DONE}:m-1:GBP:payout`;
const AT = '2026-10-01T00:00:00Z';
const RUN = `run-${HIDDEN}`;
const ACTOR = `os:${HIDDEN}`;

/** A ledger in which every text that others can choose is poisoned. */
const LEDGER = [
  insert('onceper.rule', {
    body: JSON.stringify({
      job: 'settlement',
      zone: 'UTC',
      period: 'month',
      first: '2026-08',
      calendar: { hour: 2, minute: 0 },
      parameters: { fees: {} },
    }),
    loaded_by: ACTOR,
  }),
  insert('onceper.job'),
  insert('onceper.one_off', { reason: POISON, actor: ACTOR }),
  insert('onceper.audit', { actor: ACTOR, run: RUN, detail: JSON.stringify({ reason: POISON }) }),
  insert('onceper.run', { start_id: RUN, actor: ACTOR }),
  insert('onceper.action', { owner_run: RUN, owner_exec: HIDDEN, release: POISON }),
  insert('onceper.action', {
    key: DONE,
    period: '2026-08',
    state: 'done',
    fence: 1,
    owner_run: RUN,
    result: JSON.stringify({ document: { id: POISON } }),
    done_at: AT,
  }),
  insert('onceper.attempt', {
    run: RUN,
    execution: HIDDEN,
    release: POISON,
    ended_at: AT,
    outcome: 'failed',
    code: POISON,
  }),
  insert('onceper.slice'),
  insert('onceper.outbox', { state: 'dead', counterparty_id: POISON, body: POISON }),
  insert('onceper.delivery', { outcome: 'unknown', answer: POISON, code: POISON }),
  insert('onceper.webhook', {
    id: POISON,
    type: POISON,
    number: NUMBER,
    body: POISON,
    state: 'attention',
    code: POISON,
    decided_at: AT,
  }),
  insert('onceper.outbox_act', { actor: ACTOR, reason: POISON }),
  insert('onceper.approval', {
    id: HIDDEN,
    subject: POISON,
    ask: JSON.stringify({ run: RUN }),
    plan: JSON.stringify({ reason: POISON, periods: [{ period: POISON, amounts: POISON }] }),
    reason: POISON,
    requested_by: ACTOR,
    edited_by: ACTOR,
    state: 'requested',
    decided_by: null,
    decided_at: null,
    executed_by: null,
    executed_at: null,
    expires_at: '2126-10-08T00:00:00Z',
  }),
  insert('onceper.approval', { id: 'a-1', reason: POISON }),
  insert('onceper.backfill', {
    actor: ACTOR,
    reason: POISON,
    cancelled_by: ACTOR,
    cancel_reason: POISON,
    cancelled_at: AT,
  }),
  insert('onceper.backfill_period', { state: 'ended', started_at: AT, ended_at: AT, outcome: POISON }),
  insert('settlement.merchant', { name: POISON }),
  insert('settlement.period'),
  insert('settlement.import', { file: POISON, actor: ACTOR }),
];

let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'onceper-terminal-'));
  [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
  db = openDatabase({ url: database.url, name: 'test', max: 1 });
  // The chain of the audit is made by a trigger; all else is put where no legal way leads.
  for (const { text, values } of LEDGER) {
    if (text.includes('onceper.audit ')) await db.query(text, values);
    else await forced(db, text, values);
  }
});
afterAll(async () => {
  await db.close();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** A file whose name and rows are poisoned. */
function poisonedFile(): string {
  const file = path.join(folder, `${POISON.replaceAll('/', '')}.csv`);
  const head = 'id,merchant,name,date,amount,currency';
  writeFileSync(file, `${head}\n"${POISON}","${POISON}","${POISON}","${POISON}","${POISON}","${POISON}"\n`);
  return file;
}

/** Each command that shows what others wrote, from the ledger or from the command line; the others by why they are left out. */
const LINES: Readonly<Record<string, readonly (() => readonly string[])[] | string>> = {
  up: 'starts servers',
  down: 'stops servers',
  demo: 'starts servers; its progress is tried below',
  drill: [() => ['drill', POISON]],
  migrate: [() => ['migrate', '--rules', poisonedFile()]],
  worker: [() => ['worker', POISON]],
  relay: [() => ['relay', POISON]],
  webhooks: [() => ['webhooks', '--port', POISON]],
  server: [() => ['server', '--listen', POISON]],
  gateway: [() => ['gateway', '--port', '0', '--journal', path.join(folder, POISON, 'journal')]],
  'token issue': [() => ['token', 'issue', '--subject', POISON, '--roles', POISON]],
  'token show': [() => ['token', 'show']],
  periods: [() => ['periods', 'settlement'], () => ['periods', POISON]],
  show: [() => ['show', KEY], () => ['show', DONE], () => ['show', POISON]],
  why: [() => ['why', KEY], () => ['why', DONE], () => ['why', POISON]],
  effects: [() => ['effects', DONE], () => ['effects', POISON]],
  doctor: [() => ['doctor']],
  'audit list': [() => ['audit', 'list'], () => ['audit', 'list', '--verb', POISON]],
  'audit verify': [() => ['audit', 'verify'], () => ['audit', 'verify', '--anchor', poisonedFile()]],
  'schedule list': [() => ['schedule', 'list']],
  'schedule preview': [() => ['schedule', 'preview', 'settlement', '--from', POISON]],
  'outbox list': [() => ['outbox', 'list'], () => ['outbox', 'list', '--state', POISON]],
  'outbox show': [() => ['outbox', 'show', NUMBER], () => ['outbox', 'show', POISON]],
  takeover: [() => ['takeover', POISON, '--reason', POISON]],
  skip: [() => ['skip', KEY, '--reason', POISON]],
  adjust: [() => ['adjust', DONE, '--posting', POISON, '--reason', POISON]],
  'hold list': [() => ['hold', 'list'], () => ['hold', 'list', '--key', POISON]],
  'hold release': [
    () => ['hold', 'release', NUMBER, '--reason', POISON],
    () => ['hold', 'release', '--code', POISON, '--subjects', POISON, '--reason', POISON],
  ],
  'destination list': [() => ['destination', 'list']],
  'destination resume': [() => ['destination', 'resume', POISON, '--reason', POISON]],
  'backfill request': [() => ['backfill', 'request', 'settlement', '--from', POISON, '--to', POISON]],
  'backfill list': [() => ['backfill', 'list']],
  'backfill show': [() => ['backfill', 'show', 'a-1'], () => ['backfill', 'show', POISON]],
  'backfill cancel': [() => ['backfill', 'cancel', POISON, '--reason', POISON]],
  'approvals list': [() => ['approvals', 'list', '--state', 'requested,executed']],
  'approvals show': [() => ['approvals', 'show', HIDDEN], () => ['approvals', 'show', POISON]],
  'approvals reject': [() => ['approvals', 'reject', POISON, '--reason', POISON]],
  'approvals edit': [() => ['approvals', 'edit', POISON, '--reason', POISON]],
  'approvals approve': [() => ['approvals', 'approve', HIDDEN, '--digest', POISON]],
  'approvals execute': [() => ['approvals', 'execute', HIDDEN]],
  import: [() => ['import', poisonedFile(), '--source', 'generic'], () => ['import', POISON, '--source', POISON]],
  run: [() => ['run', 'settlement', '--set', POISON], () => ['run', '--release', RUN, '--reason', POISON]],
  'schedule apply': [() => ['schedule', 'apply', POISON]],
  'schedule pause': [() => ['schedule', 'pause', POISON]],
  'schedule resume': [() => ['schedule', 'resume', POISON]],
  'outbox retry': [() => ['outbox', 'retry', NUMBER, '--reason', POISON]],
  'outbox resolve': [() => ['outbox', 'resolve', NUMBER, '--as', 'failed', '--reason', POISON]],
  'outbox clean': [() => ['outbox', 'clean', '--older-than', POISON]],
};

const CASES = Object.entries(LINES).flatMap(([name, lines]) =>
  typeof lines === 'string' ? [] : lines.map((line, at) => ({ name, at, line })),
);

async function printed(line: readonly string[], isTerminal: boolean): Promise<Printed> {
  const person = await as(`eve${HIDDEN}`, 'viewer', 'operator', 'approver');
  const given = {
    ...person,
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: namespace.address,
    TEMPORAL_NAMESPACE: namespace.namespace,
  };
  return typed(line, given, { jobs: [createSettlementJob()], isTerminal });
}

/** Our own colours and line ends are all that may stand beside text. */
function rest(text: string): string {
  return text.replaceAll(COLOUR, '').replaceAll('\n', '');
}

describe('what others wrote', () => {
  test.each(CASES)('is harmless on a terminal where $name prints it ($at)', async ({ line }) => {
    const { out, err } = await printed(line(), true);
    expect(out + err).not.toBe('');
    expect(rest(out + err)).not.toMatch(RAW);
    expect(out + err).not.toMatch(/^\s*digest {4}forged/m);
    expect(out + err).not.toMatch(/\\u\{1b\}\[\d\dm/);
  });

  test.each(CASES)('is harmless in the JSON of $name, and the same text ($at)', async ({ line }) => {
    const { out, err } = await printed([...line(), '--json'], true);
    expect(rest(out + err)).not.toMatch(RAW);
    expect(() => JSON.parse(out) as unknown).not.toThrow();
  });

  test('is tried with every command', () => {
    expect(Object.keys(LINES).toSorted()).toEqual(Object.keys(NEEDS).toSorted());
  });

  test('is the very text in JSON', async () => {
    const { out } = await printed(['approvals', 'show', HIDDEN, '--json'], true);
    expect(JSON.parse(out)).toMatchObject({ approval: { id: HIDDEN, reason: POISON, requestedBy: ACTOR } });
  });
});

test('a coloured table has the columns of a plain one, and every colour is obeyed', async () => {
  for (const line of [['doctor'], ['why', KEY], ['periods', 'settlement']]) {
    const [coloured, plain] = [await printed(line, true), await printed(line, false)];
    expect(coloured.out).toContain('\u001b[');
    expect(coloured.out.replaceAll(COLOUR, '').replaceAll(SECONDS, 'Z')).toBe(plain.out.replaceAll(SECONDS, 'Z'));
  }
});

test('colours are ours alone: text that paints itself is written out, and what we paint is painted', () => {
  const paint = colours(true);
  expect(shown(`${paint.green('done')} \u001b[32mforged\u001b[39m`)).toBe(
    '\u001b[32mdone\u001b[39m \\u{1b}[32mforged\\u{1b}[39m',
  );
  expect(shown(paint.bold(`a ${paint.red('b')} \u001b[8mc`))).toBe(
    '\u001b[1ma \u001b[31mb\u001b[39m \\u{1b}[8mc\u001b[22m',
  );
  expect(colours(false).red('plain')).toBe('plain');
});

test('the progress of a demo is of one line a step too, and its failure is the step’s own', () => {
  const child = path.join(import.meta.dirname, 'perform-steps-child.ts');
  const ended = spawnSync(process.execPath, ['--import', 'tsx', child, POISON], { encoding: 'utf8' });
  expect(ended.status).toBe(7);
  expect(ended.stdout).toContain('\\u{1b}');
  expect(rest(ended.stdout + ended.stderr)).not.toMatch(RAW);
  expect(ended.stdout + ended.stderr).not.toMatch(/^\s*digest {4}forged/m);
});

test('text of others begins no line among ours', () => {
  expect(linesOf(['  because   x', `  said      ${POISON}`]).split('\n')).toHaveLength(2);
});
