import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepWatch, lookAfterWatch, rememberedAnchor } from '../../src/app/watch.ts';
import { createLog } from '../../src/observability/log.ts';
import { anchorsIn, isSignedBy } from '../../src/ops/audit/anchors.ts';
import { verifyAudit } from '../../src/ops/audit/verify.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { filteredEntries } from '../../src/store/audit-read.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { freezeDelivery, readFreeze, thawDelivery } from '../../src/store/epoch.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let worker: TestWorker;

beforeEach(async () => {
  [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
  db = openDatabase({ url: database.url, name: 'test', max: 5 });
  await installTinyJob(db, { leaseSeconds: 2, first: '2026-08' });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs: [createTinyJob(2)] });
});
afterEach(async () => {
  await worker.stop();
  await db.close();
  await database.drop();
});

const KEY = 'tiny:2026-08';
const ANY = { job: null, key: null, actor: null, verb: null, from: null, to: null };

async function tick(id: string) {
  const start = { id, door: 'run', scheduledAt: '2026-09-01T02:00:00Z', actor: 'os:ann', overrides: {} };
  return worker.client.workflow.execute('tick', {
    workflowId: id,
    taskQueue: 'onceper',
    args: [{ job: 'tiny', start }],
  });
}

test('the expectation check counts what nothing asked for, and starts the owner of an unfinished key again', async () => {
  await worker.client.workflow.execute('tick', {
    workflowId: 'admit-only',
    taskQueue: 'onceper',
    args: [
      {
        job: 'tiny',
        start: { id: 'one', door: 'run', scheduledAt: '2026-09-01T02:00:00Z', actor: 'a', overrides: {} },
      },
    ],
  });
  await worker.client.workflow.getHandle(KEY).result();
  const found = await worker.client.workflow.execute('expect', {
    workflowId: 'expect-1',
    taskQueue: 'onceper',
    args: [],
  });
  expect(found).toMatchObject({ redriven: 0 });
  expect((found as { overdue: number }).overdue).toBeGreaterThanOrEqual(2);
});

test('a key that was admitted and then lost its workflow is driven by the next expectation check', async () => {
  await db.query(
    `insert into onceper.run (start_id, job_id, scheduled_at, trigger, actor, period, key, decision)
     values ('lost', 'tiny', '2026-09-01T02:00:00Z', 'schedule', 'test', '2026-08', $1, 'admitted')`,
    [KEY],
  );
  await db.query(
    `insert into onceper.action (key, job, period, state, owner_run, lease_until, fingerprint, overrides, rule_version, release)
     values ($1, 'tiny', '2026-08', 'admitted', 'lost', clock_timestamp(), '', '{}', 1, 'test')`,
    [KEY],
  );
  const found = await worker.client.workflow.execute('expect', {
    workflowId: 'expect-1',
    taskQueue: 'onceper',
    args: [],
  });
  expect(found).toMatchObject({ redriven: 1 });
  await waitFor(async () => (await actionByKey(db, KEY))?.state === 'done', { what: 'the document' });
});

test('the watch remembers the epoch outside, and a database that shows an older one is frozen', async () => {
  await keepWatch(worker.client, 'onceper');
  await keepWatch(worker.client, 'onceper');
  const handle = worker.client.workflow.getHandle('onceper-epoch');
  const remembered = await waitFor(
    async () => (await handle.describe()).memo?.['epoch'] as { epoch: string } | undefined,
    {
      what: 'the memo',
    },
  );
  expect(Number(remembered.epoch)).toBeGreaterThan(0);
  expect(await readFreeze(db)).toBeNull();
  await db.query('alter table onceper.epoch disable trigger epoch_guard');
  await db.query('update onceper.epoch set epoch = 0');
  await db.query('alter table onceper.epoch enable trigger epoch_guard');
  await handle.signal('look');
  const freeze = await waitFor(() => readFreeze(db), { what: 'the freeze' });
  expect(freeze.reason).toContain('an older copy of the database');
  expect(await thawDelivery(db)).toBe(true);
  await handle.terminate('end of the test');
});

test('the head of the audit is anchored outside the database: signed in the log, at each close and each look, and in Temporal', async () => {
  await worker.stop();
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const lines: string[] = [];
  const log = createLog({ name: 'worker', release: 'test', level: 'info', write: (line) => void lines.push(line) });
  const options = { namespace, databaseUrl: database.url, jobs: [createTinyJob(2)] };
  worker = await startTestWorker({ ...options, auditKey: privateKey, log });
  await keepWatch(worker.client, 'onceper');
  await tick('one');
  await worker.client.workflow.getHandle(KEY).result();
  const closed = (await filteredEntries(db, { ...ANY, verb: 'close' }, { before: null, limit: 1 }))[0];
  const remembered = await waitFor(
    async () => {
      const anchor = await rememberedAnchor(worker.client);
      return anchor !== null && anchor.seq === closed?.seq.toString() ? anchor : null;
    },
    { what: 'the anchor of the close in the memo' },
  );
  const anchors = await anchorsIn(lines, 'the log');
  expect(anchors.at(-1)).toMatchObject({ seq: closed?.seq.toString(), hash: closed?.hash });
  for (const anchor of [...anchors, remembered]) expect(isSignedBy(anchor, publicKey)).toBe(true);
  const all = [...anchors, remembered];
  expect(await verifyAudit(db, { anchors: all, key: publicKey })).toMatchObject({ ok: true, anchors: all.length });
  await worker.client.workflow.getHandle('onceper-epoch').terminate('end of the test');
});

test('a watch that Temporal has lost under a running worker is restored, with what a Temporal without memory lacks', async () => {
  const { client } = worker;
  await keepWatch(client, 'onceper');
  await client.workflow.getHandle('onceper-epoch').terminate('Temporal forgets it');
  await client.schedule.getHandle('onceper-expect').delete();
  const events: string[] = [];
  const over = new AbortController();
  let prepared = 0;
  const prepare = () => {
    prepared += 1;
    return prepared === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve();
  };
  const parts = {
    taskQueue: 'onceper',
    log: ({ event }: { event: string }) => void events.push(event),
    prepare,
    everyMs: 20,
  };
  const watching = lookAfterWatch(client, parts, over.signal);
  await waitFor(() => Promise.resolve(events.includes('watch_restored')), { what: 'the watch' });
  over.abort();
  await watching;
  expect(events).toEqual(['watch_not_kept', 'watch_restored']);
  expect((await client.workflow.getHandle('onceper-epoch').describe()).status.name).toBe('RUNNING');
  expect((await client.schedule.getHandle('onceper-expect').describe()).action).toMatchObject({
    workflowType: 'expect',
  });
  await client.workflow.getHandle('onceper-epoch').terminate('end of the test');
});

test('a key that Temporal has completed and the ledger has just admitted freezes delivery', async () => {
  await tick('one');
  await worker.client.workflow.getHandle(KEY).result();
  await worker.stop();
  const rewound = await createTestDatabase();
  const again = openDatabase({ url: rewound.url, name: 'test', max: 5 });
  await installTinyJob(again, { leaseSeconds: 2, first: '2026-08' });
  worker = await startTestWorker({ namespace, databaseUrl: rewound.url, jobs: [createTinyJob(2)] });
  expect(await tick('two')).toMatchObject({ decision: 'admitted' });
  expect((await readFreeze(again))?.reason).toContain('Temporal has completed tiny:2026-08');
  expect(await freezeDelivery(again, 'a later reason')).toBe(false);
  await again.close();
  await rewound.drop();
});
