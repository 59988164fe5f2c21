import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anchorOf } from '../../src/ops/audit/anchors.ts';
import type { AuditList } from '../../src/ops/audit/list.ts';
import { auditHead } from '../../src/store/audit.ts';
import type { Database } from '../../src/store/database.ts';
import { chainOf, tamper } from '../ops/audit/chain.ts';
import type { TestDatabase } from '../support/database.ts';
import { testPool } from '../support/ledger.ts';
import { as, documentOf, type ErrorDocument, emptyHome, NOBODY, typed } from './command-line.ts';

let database: TestDatabase;
let db: Database;
let given: Record<string, string>;

beforeAll(async () => {
  ({ database, db } = await chainOf((url) => testPool(url, 4), 12));
  given = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: NOBODY };
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const audit = (...line: readonly string[]) => typed(['audit', ...line, '--json'], given);
const numbers = async (...line: readonly string[]) =>
  documentOf<AuditList>(await audit('list', ...line)).entries.map(({ seq }) => Number(seq));

test('the list is newest first, and goes on page by page', async () => {
  const first = documentOf<AuditList>(await audit('list', '--limit', '5'));
  expect(first.entries[0]).toMatchObject({
    seq: '12',
    actor: 'os:p0',
    verb: 'grant',
    job: 'tiny',
    key: 'tiny:2026-01',
    run: 'run-12',
    detail: { n: 12, note: 'é "quoted"' },
  });
  expect(first.next).toBe('8');
  expect(await numbers('--limit', '5', '--before', '8')).toEqual([7, 6, 5, 4, 3]);
  expect(documentOf<AuditList>(await audit('list', '--before', '3')).next).toBeNull();
});

test('the list shows what passes its filters', async () => {
  expect(await numbers('--verb', 'close')).toEqual([10, 6, 2]);
  expect(await numbers('--actor', 'OS:P1', '--verb', 'release')).toEqual([7]);
  expect(await numbers('--job', 'other')).toEqual([]);
  expect(await numbers('--key', 'tiny:2026-02')).toEqual([]);
  const { rows } = await db.query<{ at: string }>('select at from onceper.audit where seq in (4, 9) order by seq');
  const [from = '', to = ''] = rows.map(({ at }) => at);
  expect(await numbers('--from', from, '--to', to)).toEqual([8, 7, 6, 5, 4]);
  const printed = await typed(['audit', 'list', '--limit', '1'], given);
  expect(printed.out).toContain('more: the same with --before 12');
});

test('a filter that can’t be is a usage error', async () => {
  for (const line of [
    ['--verb', 'pay'],
    ['--before', 'x'],
    ['--from', 'monday'],
    ['--limit', '0'],
  ]) {
    const printed = await audit('list', ...line);
    expect(printed.code).toBe(2);
  }
});

test('verifying needs no more than reading, and ends with 6 where the chain does not hold', async () => {
  const good = await typed(['audit', 'verify', '--json'], { ...given, ...(await as('carl', 'viewer')) });
  expect(good.code).toBe(0);
  expect(documentOf(good)).toMatchObject({ ok: true, entries: '12', head: { seq: '12' }, anchors: 0, findings: [] });
  await tamper(db, (tx) => tx.query(`update onceper.audit set actor = 'os:eve' where seq = 3`));
  const bad = await audit('verify');
  await tamper(db, (tx) => tx.query(`update onceper.audit set actor = 'os:p0' where seq = 3`));
  expect(bad.code).toBe(6);
  expect(documentOf(bad)).toMatchObject({
    ok: false,
    found: 1,
    findings: [{ kind: 'edited', row: '3', text: 'row 3 was edited: it is not what its hash was made from' }],
  });
});

test('anchors are taken from a log, and checked with the key where it is given', async () => {
  const { privateKey } = generateKeyPairSync('ed25519');
  const keyFile = path.join(emptyHome, 'audit.pem');
  writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const log = path.join(emptyHome, 'worker.log');
  const signed = anchorOf(await auditHead(db), privateKey);
  writeFileSync(log, `{"event":"worker_started"}\n${JSON.stringify({ event: 'audit_anchor', ...signed })}\n`);
  const key = { ...given, ONCEPER_AUDIT_KEY: keyFile };
  const held = await typed(['audit', 'verify', '--anchor', log, '--json'], key);
  expect(documentOf(held)).toMatchObject({ ok: true, anchors: 1, signaturesChecked: true });
  await tamper(db, (tx) => tx.query(`update onceper.audit set actor = 'os:eve' where seq = 3`), {
    from: 3,
    moveHead: true,
  });
  expect((await audit('verify')).code).toBe(0);
  const found = await typed(['audit', 'verify', '--anchor', log], key);
  expect(found.code).toBe(6);
  expect(found.out).toContain('the chain was rewritten: row 12 is not the one that was anchored');
  const unsigned = anchorOf(await auditHead(db), null);
  writeFileSync(log, JSON.stringify({ event: 'audit_anchor', ...unsigned }));
  const untrusted = await typed(['audit', 'verify', '--anchor', log], key);
  expect(untrusted.out).toContain("row 12 can't be trusted: it is not signed");
});

test.each([
  ['/nowhere.log', 'file_unreadable', 2],
  ['/dev/null', 'no_anchor', 2],
])('an anchor file %s is refused', async (file, code, exit) => {
  const printed = await audit('verify', '--anchor', file);
  expect(documentOf<ErrorDocument>(printed).error.code).toBe(code);
  expect(printed.code).toBe(exit);
});
