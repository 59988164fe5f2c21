import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AuditEntry, GENESIS } from '../../src/kernel/audit.ts';
import { appendAudit, auditHead } from '../../src/store/audit.ts';
import { asTx, connect, type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'audit test', max: 60 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const entry = (detail: AuditEntry['detail'] = {}): AuditEntry => ({
  actor: 'os:ann',
  verb: 'release',
  job: 'tiny',
  key: 'tiny:2026-01',
  run: 'run-1',
  detail,
});

interface Row {
  readonly seq: bigint;
  readonly at: string;
  readonly actor: string;
  readonly detail: string;
  readonly previous: string;
  readonly hash: string;
}

async function rows(): Promise<Row[]> {
  const found = await db.query<Row & Record<string, unknown>>(
    `select seq, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, actor, verb, job, key, run, subject,
            detail, previous, hash from onceper.audit order by seq`,
  );
  return found.rows;
}

test('fifty parallel appends to an empty audit make one line', async () => {
  await Promise.all(
    Array.from({ length: 50 }, (_, n) =>
      transaction(db, {}, (tx) => appendAudit(tx, { ...entry({ n }), actor: `os:p${n}` })),
    ),
  );
  const found = await rows();
  expect(found.map(({ seq }) => seq)).toEqual(Array.from({ length: 50 }, (_, at) => BigInt(at + 1)));
  expect(found.map(({ previous }) => previous)).toEqual([GENESIS, ...found.slice(0, -1).map(({ hash }) => hash)]);
  expect(new Set(found.map(({ actor }) => actor)).size).toBe(50);
  expect(await auditHead(db)).toMatchObject({ seq: 50n, hash: found.at(-1)?.hash });
});

test('the hash is that of the entry’s canonical JSON, whatever its texts hold', async () => {
  const odd = {
    text: 'a "quoted" \\ line\nwith\ttabs, \u0001, \u007f, é, 日本, \u2028 and 😀',
    n: -7,
    deep: [{ b: 1, a: null }],
  };
  const hash = await transaction(db, {}, async (tx) => {
    await tx.query("set local timezone = 'Asia/Kathmandu'");
    return (await appendAudit(tx, { ...entry(odd), key: odd.text, subject: 'é"\\', run: null })).hash;
  });
  const found = (await rows()).at(-1);
  expect(found?.detail).toBe(canonicalize(odd));
  const { hash: _, ...said } = { ...found, detail: JSON.parse(found?.detail ?? '') as unknown };
  const text = canonicalize({ ...said, seq: found?.seq.toString() }) ?? '';
  expect(createHash('sha256').update(text).digest('hex')).toBe(hash);
});

test('an entry is gone with the transaction that it records, and leaves no gap', async () => {
  const before = await auditHead(db);
  const stop = new Error('rolled back');
  const tried = transaction(db, {}, async (tx) => {
    await appendAudit(tx, entry());
    throw stop;
  });
  await expect(tried).rejects.toBe(stop);
  expect(await auditHead(db)).toMatchObject({ seq: before.seq, hash: before.hash });
  expect((await transaction(db, {}, (tx) => appendAudit(tx, entry()))).seq).toBe(before.seq + 1n);
});

test('number, instant and hashes are the database’s own, whatever an insert says', async () => {
  const before = await auditHead(db);
  await db.query(
    `insert into onceper.audit (seq, at, actor, verb, detail, previous, hash) values (7, '2020-01-01', 'os:eve', 'release', '{}', 'x', 'y')`,
  );
  const found = (await rows()).at(-1);
  expect(found).toMatchObject({ seq: before.seq + 1n, actor: 'os:eve', previous: before.hash });
  expect(found?.at.startsWith('2020')).toBe(false);
  expect(await auditHead(db)).toMatchObject({ seq: found?.seq, hash: found?.hash });
});

test('an actor is written in one spelling', async () => {
  await transaction(db, {}, (tx) => appendAudit(tx, { ...entry(), actor: ' OS:Ann Lee ' }));
  expect((await rows()).at(-1)?.actor).toBe('os:ann-lee');
});

test('a process that stops between its entry and its COMMIT holds up the others for two seconds at most', async () => {
  const client = await connect(db);
  client.on('error', () => undefined);
  try {
    await client.query('begin');
    const { seq } = await appendAudit(asTx(client), entry());
    const next = await transaction(db, { lockTimeout: 10_000 }, (tx) => appendAudit(tx, entry()));
    expect(next.seq).toBe(seq);
    await expect(client.query('commit')).rejects.toThrow();
  } finally {
    client.release(true);
  }
});

test('a shorter patience of the transaction itself stays', async () => {
  const patience = await transaction(db, { idleInTransactionTimeout: 700 }, async (tx) => {
    await appendAudit(tx, entry());
    const {
      rows: [row],
    } = await tx.query<{ value: string }>(`select current_setting('idle_in_transaction_session_timeout') as value`);
    return row?.value;
  });
  expect(patience).toBe('700ms');
});
