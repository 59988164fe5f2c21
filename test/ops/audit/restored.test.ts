import { spawnSync } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { anchorOf } from '../../../src/ops/audit/anchors.ts';
import { type Verified, verifyAudit } from '../../../src/ops/audit/verify.ts';
import { appendAudit, auditHead } from '../../../src/store/audit.ts';
import { connect, type Database, transaction } from '../../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { testPool } from '../../support/ledger.ts';
import { chainOf } from './chain.ts';

let source: { readonly database: TestDatabase; readonly db: Database };
let target: TestDatabase;
let restored: Database;

beforeEach(async () => {
  source = await chainOf((url) => testPool(url, 4), 25);
  target = await createTestDatabase();
  restored = testPool(target.url, 4);
});
afterEach(async () => {
  await Promise.all([source.db.close(), restored.close()]);
  await Promise.all([source.database.drop(), target.drop()]);
});

/** Verifies in a session of another time zone and another way to write dates, with the anchor of before. */
async function verifiedElsewhere(): Promise<Verified> {
  const anchors = [anchorOf(await auditHead(source.db), null)];
  return transaction(restored, {}, async (tx) => {
    await tx.query(`set local timezone = 'Pacific/Chatham'; set local datestyle = 'German'`);
    return verifyAudit(tx, { anchors, key: null });
  });
}

async function appendOne(): Promise<bigint> {
  const entry = { actor: 'os:ann', verb: 'grant', job: null, key: null, run: null, detail: {} } as const;
  return (await transaction(restored, {}, (tx) => appendAudit(tx, entry))).seq;
}

const TABLES = ['onceper.audit', 'onceper.audit_head'];

/** Copies the audit's tables as a dump does: as text, out of a session in one time zone and into one in another. */
async function copyOver(): Promise<void> {
  const [out, into] = await Promise.all([connect(source.db), connect(restored)]);
  try {
    await out.query(`set timezone = 'Asia/Kathmandu'`);
    await into.query(`set timezone = 'America/St_Johns'; set session_replication_role = replica`);
    await into.query('truncate onceper.audit, onceper.audit_head');
    for (const table of TABLES) {
      const chunks: Buffer[] = [];
      for await (const chunk of out.query(copyTo(`copy ${table} to stdout`))) chunks.push(chunk as Buffer);
      await pipeline(Readable.from(chunks), into.query(copyFrom(`copy ${table} from stdin`)));
    }
  } finally {
    out.release(true);
    into.release(true);
  }
}

test('copied out and in as text between sessions of other time zones, the chain holds and goes on', async () => {
  await copyOver();
  expect(await verifiedElsewhere()).toMatchObject({ ok: true, entries: 25n, anchors: 1 });
  expect(await appendOne()).toBe(26n);
  expect(await verifiedElsewhere()).toMatchObject({ ok: true, entries: 26n });
});

/** pg_dump refuses a server newer than itself. */
function majorOf(program: string): number {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return Number(/\) (\d+)/.exec(stdout ?? '')?.[1] ?? 0);
}
const dumper = Math.min(majorOf('pg_dump'), majorOf('psql'));
const server = Number(inject('serverMajor'));

describe.skipIf(dumper < server)(`pg_dump ${dumper} of a server ${server}`, () => {
  test('dumped and restored on a server in another time zone, the chain holds and goes on', async () => {
    await restored.query('drop schema onceper cascade; drop schema settlement cascade; drop schema public cascade');
    await restored.query('create schema public');
    const dump = run('pg_dump', ['--dbname', source.database.url], '');
    await restored.query(`alter database ${target.name} set timezone = 'Asia/Tokyo'`);
    run('psql', ['--quiet', '--set', 'ON_ERROR_STOP=1', '--dbname', target.url], dump);
    expect(await verifiedElsewhere()).toMatchObject({ ok: true, entries: 25n, anchors: 1 });
    expect(await appendOne()).toBe(26n);
  });
});

function run(program: string, args: readonly string[], input: string): string {
  const done = spawnSync(program, args, { input, encoding: 'utf8', maxBuffer: 64_000_000 });
  expect(done.stderr, program).toBe('');
  return done.stdout;
}
