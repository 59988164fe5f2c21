import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { judgeRefusedStart, look } from '../../activities/epoch.ts';
import type { ActivityServices } from '../../activities/services.ts';
import { resolveEffect, retryApproved, retryEffect } from '../../src/ops/outbox.ts';
import { auditHead } from '../../src/store/audit.ts';
import { digestOf } from '../../src/store/audit-ledger.ts';
import { connect, type Database, transaction } from '../../src/store/database.ts';
import { thawDelivery } from '../../src/store/epoch.ts';
import { storeOneOff } from '../../src/store/rules.ts';
import { cancelAction, skipAction } from '../../src/store/stop.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { forced } from '../support/forced.ts';
import { close, endAttempt, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';

let database: TestDatabase;
let db: Database;
let services: ActivityServices;
let mayClose = true;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url);
  const job = createTinyJob(2, {
    close: () => (mayClose ? Promise.resolve() : Promise.reject(new Error('the document is wrong'))),
  });
  services = servicesFor(db, [job]);
  await installTinyJob(db);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** What was appended since, without what every entry has. */
async function entriesSince(seq: bigint): Promise<Record<string, unknown>[]> {
  const { rows } = await db.query<{ detail: string } & Record<string, unknown>>(
    'select actor, verb, key, run, subject, detail from onceper.audit where seq > $1 order by seq',
    [seq],
  );
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail) as unknown }));
}

async function entriesOf(work: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const { seq } = await auditHead(db);
  await work();
  return entriesSince(seq);
}

async function opened(month: string): Promise<{ run: string; key: string }> {
  const { run, key, decision } = await openRunOf(services, { scheduledAt: nominal(month) });
  expect(decision).toBe('admitted');
  return { run, key: key ?? '' };
}

/** The nominal time that closes a month: two o'clock of the next one's first day. */
const nominal = (month: string) => {
  const [year = 0, of = 0] = month.split('-').map(Number);
  return `${new Date(Date.UTC(year, of, 1, 2)).toISOString().slice(0, 19)}Z`;
};

test('loading a rule is audited once, with the digest of what was loaded', async () => {
  const [loaded] = await entriesSince(0n);
  expect(loaded).toMatchObject({ actor: 'test', verb: 'load-rule', detail: { version: 1 } });
  expect(await entriesOf(() => installTinyJob(db))).toEqual([]);
});

test('an admission, slices and a duplicate are not audited; the seal, the grants and the close are', async () => {
  let run = '';
  let result: unknown;
  const entries = await entriesOf(async () => {
    const first = await opened('2020-01');
    run = first.run;
    const grant = await mustClaim(services, { run });
    for (const slice of grant.slices) await performOne(services, grant, slice);
    const closed = await close(services, grant);
    result = closed.kind === 'done' ? closed.result : null;
    await close(services, grant);
    expect((await openRunOf(services, { scheduledAt: nominal('2020-01') })).decision).toBe('duplicate');
  });
  const about = { actor: 'worker:test', key: 'tiny:2020-01', run, subject: null };
  expect(entries).toEqual([
    { ...about, verb: 'seal', detail: { fence: '1', slices: 2 } },
    { ...about, verb: 'grant', detail: { fence: '1', attempt: 1, execution: 'execution-1', pass: 1 } },
    { ...about, verb: 'close', detail: { fence: '1', result: digestOf(result) } },
  ]);
});

test('a second grant is audited without a seal, and a close that fails is not audited', async () => {
  const { run, key } = await opened('2020-02');
  const grant = await mustClaim(services, { run });
  for (const slice of grant.slices) await performOne(services, grant, slice);
  mayClose = false;
  const refused = await entriesOf(() => expect(close(services, grant)).rejects.toThrow('the document is wrong'));
  mayClose = true;
  expect(refused).toEqual([]);
  const end = { outcome: 'failed', code: 'x', detail: null, slicesBegun: 0 } as const;
  await endAttempt(services, { key, fence: grant.fence, ...end });
  const again = await entriesOf(() => mustClaim(services, { run, pass: 2 }));
  expect(again).toMatchObject([{ verb: 'grant', detail: { fence: '2', attempt: 2, pass: 2 } }]);
});

test('a refused and an in-progress start are audited, each once', async () => {
  const startId = randomUUID();
  const before = await entriesOf(async () => {
    await openRunOf(services, { startId, scheduledAt: null, actor: 'OS:Ann' });
    await openRunOf(services, { startId, scheduledAt: null, actor: 'OS:Ann' });
  });
  expect(before).toMatchObject([
    { actor: 'os:ann', verb: 'refused', key: null, run: startId, detail: { code: 'no_nominal_time' } },
  ]);
  await opened('2020-03');
  const entries = await entriesOf(() => openRunOf(services, { scheduledAt: nominal('2020-03') }));
  expect(entries).toMatchObject([{ actor: 'test', verb: 'in-progress', key: 'tiny:2020-03' }]);
});

test('an override that differs from what was settled is audited as a conflict', async () => {
  const ask = { scheduledAt: nominal('2020-01'), overrides: { color: 'red' } };
  const entries = await entriesOf(() => openRunOf(services, ask));
  expect(entries).toMatchObject([{ verb: 'conflict', key: 'tiny:2020-01' }]);
});

test('a run that asks again and again is deferred once in the audit, and what it becomes is told', async () => {
  const other = servicesFor(db, [createTinyJob(1, { id: 'chain', needs: 'previous' })]);
  await installTinyJob(db, { job: 'chain' });
  const startId = randomUUID();
  const ask = { startId, job: 'chain', scheduledAt: nominal('2020-02') };
  const entries = await entriesOf(async () => {
    for (const _ of [1, 2, 3]) expect((await openRunOf(other, ask)).decision).toBe('deferred');
  });
  expect(entries).toMatchObject([{ verb: 'deferred', run: startId, key: 'chain:2020-02' }]);
});

test('a run that is held is audited with its reason, once however often it asks', async () => {
  const empty = servicesFor(db, [
    createTinyJob(1, { inspect: () => Promise.resolve({ kind: 'held', code: 'empty', reason: 'no rows' }) }),
  ]);
  const ask = { startId: randomUUID(), scheduledAt: nominal('2020-04') };
  const entries = await entriesOf(async () => {
    for (const _ of [1, 2]) expect((await openRunOf(empty, ask)).decision).toBe('held');
  });
  expect(entries.filter(({ verb }) => verb === 'held')).toMatchObject([
    { key: 'tiny:2020-04', run: ask.startId, detail: { code: 'empty' } },
  ]);
});

test('cancelling and skipping are audited with who and why, and not where they change nothing', async () => {
  const { key } = await opened('2020-05');
  const by = { actor: 'user:ann', reason: 'wrong rule' };
  const skip = { ...by, key, job: 'tiny', period: '2020-05', ruleVersion: 1, release: 'test' };
  const entries = await entriesOf(async () => {
    await cancelAction(db, { key, ...by, lockTimeout: 5_000 });
    await cancelAction(db, { key, ...by, lockTimeout: 5_000 });
    await skipAction(db, skip, () => Promise.resolve());
    await skipAction(db, skip, () => Promise.resolve());
    await skipAction(db, { ...skip, key: 'tiny:2020-06', period: '2020-06' }, () => Promise.resolve());
  });
  expect(entries).toMatchObject([
    { actor: 'user:ann', verb: 'cancel', key, detail: { from: 'admitted', reason: 'wrong rule' } },
    { verb: 'skip', key, detail: { from: 'cancelled' } },
    { verb: 'skip', key: 'tiny:2020-06', detail: { from: 'none' } },
  ]);
});

test('what a person does to an effect is audited with its number', async () => {
  const number = 'tiny:2020-01:s-0001:GBP:payout';
  const by = { number, actor: 'user:ann', reason: 'bank letter' };
  await forced(db, `update onceper.outbox set state = 'dead' where number = $1`, [number]);
  const entries = await entriesOf(async () => {
    await transaction(db, {}, (tx) => retryApproved(tx, by));
    await forced(db, `update onceper.outbox set state = 'needs_attention' where number = $1`, [number]);
    const fate = { fate: 'succeeded', counterpartyId: 'tr_1' } as const;
    await transaction(db, {}, (tx) => resolveEffect(tx, services.registry, { ...by, ...fate }));
    await expect(retryEffect(db, by)).rejects.toMatchObject({ code: 'nothing_to_retry' });
  });
  const about = { actor: 'user:ann', key: 'tiny:2020-01', subject: number };
  expect(entries).toMatchObject([
    { ...about, verb: 'retry', detail: { from: 'dead', to: 'pending', reason: 'bank letter' } },
    { ...about, verb: 'resolve', detail: { from: 'needs_attention', to: 'succeeded' } },
  ]);
});

test('a freeze is audited once, by whichever way it was found', async () => {
  const { run, key } = await opened('2020-07');
  const seen = { ...services, statusOfWorkflow: () => Promise.resolve('COMPLETED') };
  const entries = await entriesOf(async () => {
    expect(await judgeRefusedStart(seen, { key, run })).toBe('rewound');
    await look(services, { systemIdentifier: 'other', timeline: 9, epoch: '100' });
  });
  expect(entries).toMatchObject([{ actor: 'worker:test', verb: 'freeze', key, run }]);
  await thawDelivery(db);
  const looked = await entriesOf(() => look(services, { systemIdentifier: 'other', timeline: 9, epoch: '900' }));
  expect(looked).toMatchObject([{ verb: 'freeze', key: null, run: null }]);
  await thawDelivery(db);
});

test('a one-off instant is audited where it is stored, once', async () => {
  const oneOff = { job: 'tiny', at: '2030-01-01T02:00:00Z', reason: 'a rehearsal', actor: 'user:ann' };
  const store = () => transaction(db, {}, (tx) => storeOneOff(tx, oneOff));
  const entries = await entriesOf(async () => {
    await store();
    await store();
  });
  expect(entries).toMatchObject([
    { actor: 'user:ann', verb: 'one-off', detail: { at: oneOff.at, reason: oneOff.reason } },
  ]);
});

test('slices and renewals go on while somebody holds the head of the audit; an admission does too', async () => {
  const { run } = await opened('2020-08');
  const grant = await mustClaim(services, { run });
  const client = await connect(db);
  try {
    await client.query('begin');
    await client.query('select from onceper.audit_head for update');
    for (const slice of grant.slices) expect((await performOne(services, grant, slice)).kind).toBe('performed');
    await opened('2020-09');
    expect((await openRunOf(services, { scheduledAt: nominal('2020-01') })).decision).toBe('duplicate');
    const closing = close(services, grant);
    await client.query('commit');
    expect((await closing).kind).toBe('done');
  } finally {
    client.release();
  }
});
