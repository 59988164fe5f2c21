import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import { type Reconciled, reconcileRewind } from '../../src/ops/rewind.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { freezeDelivery, readFreeze } from '../../src/store/epoch.ts';
import { deliverAll, FAST, gatewayTo } from '../relay/harness.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { useTestBank } from '../support/simulator.ts';
import { createTinyJob, installTinyJob, type TinyHooks } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';
import { documentOf, type ErrorDocument, typed } from './command-line.ts';

const bank = useTestBank();
const AUGUST = 'tiny:2026-08';
const SEPTEMBER = 'tiny:2026-09';
let namespace: TestNamespace;
let databases: { readonly home: TestDatabase; readonly db: Database }[];
let worker: TestWorker | null;

beforeEach(async () => {
  namespace = await createTestNamespace();
  databases = [];
  worker = null;
});
afterEach(async () => {
  await worker?.stop();
  for (const { db } of databases) await db.close();
  for (const { home } of databases) await home.drop();
});

const jobOf = (subjects: number, hooks: TinyHooks = {}): Job =>
  createTinyJob(subjects, { needs: 'previous', ...hooks });

/** A ledger that knows the job and its rule and nothing else: what a restore of the first day gives. */
async function freshLedger(): Promise<{ readonly url: string; readonly db: Database }> {
  const home = await createTestDatabase();
  const db = openDatabase({ url: home.url, name: 'test', max: 6 });
  databases.push({ home, db });
  await installTinyJob(db, { leaseSeconds: 2, first: '2026-08' });
  return { url: home.url, db };
}

async function workOn(url: string, job = jobOf(3)): Promise<TestWorker> {
  await worker?.stop();
  worker = await startTestWorker({ namespace, databaseUrl: url, jobs: [job] });
  return worker;
}

/** Settles both months as two runs would, and pays them. */
async function settleAndPay(gatewayUrl: string): Promise<{ readonly url: string; readonly db: Database }> {
  const { url, db } = await freshLedger();
  const { client } = await workOn(url);
  const gateway = gatewayTo(gatewayUrl);
  for (const [month, next] of [
    ['2026-08', '2026-09'],
    ['2026-09', '2026-10'],
  ]) {
    const start = { id: `run-${month}`, door: 'run', scheduledAt: `${next}-01T02:00:00Z`, actor: 'a', overrides: {} };
    await client.workflow.execute('tick', {
      workflowId: `t-${month}`,
      taskQueue: 'onceper',
      args: [{ job: 'tiny', start }],
    });
    await client.workflow.getHandle(`tiny:${month}`).result();
    await deliverAll({ db, jobs: createRegistry([jobOf(3)]), gateway }, `tiny:${month}`);
  }
  await gateway.close();
  return { url, db };
}

async function reconcile(url: string, gatewayUrl: string, job = jobOf(3)) {
  const environment = {
    DATABASE_URL: url,
    TEMPORAL_ADDRESS: namespace.address,
    TEMPORAL_NAMESPACE: namespace.namespace,
    ONCEPER_GATEWAY_URL: gatewayUrl,
    ONCEPER_GATEWAY_VISIBILITY_DELAY: '0ms',
  };
  return typed(['doctor', '--reconcile-rewind', '--json'], environment, { jobs: [job] });
}

async function send(gatewayUrl: string, ...numbers: readonly string[]): Promise<void> {
  const gateway = gatewayTo(gatewayUrl);
  for (const reference of numbers) {
    await gateway.send(reference, JSON.stringify({ amount: '100', currency: 'GBP', destination: 's-0001', reference }));
  }
  await gateway.close();
}

describe('one command after a restore', () => {
  test('settles again what was lost, though Temporal has completed it, and nothing is paid twice', async () => {
    const { url: gatewayUrl } = await bank.start({ forgetAfterMs: 0 });
    await settleAndPay(gatewayUrl);
    const { url, db } = await freshLedger();
    await workOn(url);
    const printed = await reconcile(url, gatewayUrl);
    expect(printed.err).toContain(SEPTEMBER);
    expect(printed.code).toBe(0);
    expect(documentOf(printed)).toMatchObject({ kind: 'thawed', known: 6, lookedUpFirst: 6, twice: [], lost: [] });
    expect(await readFreeze(db)).toBeNull();
    const gateway = gatewayTo(gatewayUrl);
    for (const key of [AUGUST, SEPTEMBER]) {
      const services = { db, jobs: createRegistry([jobOf(3)]), gateway };
      expect(await deliverAll(services, key, FAST)).toEqual({ succeeded: 3 });
    }
    await gateway.close();
    expect([...bank.executed().values()]).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test('may be killed while it waits, and goes on when it is typed again', async () => {
    const { url: gatewayUrl } = await bank.start();
    await settleAndPay(gatewayUrl);
    const { url, db } = await freshLedger();
    const { client } = await workOn(url);
    const gateway = gatewayTo(gatewayUrl);
    const killed = reconcileRewind(
      {
        db,
        registry: createRegistry([jobOf(3)]),
        gateway,
        actor: 'test',
        startRun: async ({ id, job, scheduledAt, overrides }, door) => {
          const start = { id, door: 'run', scheduledAt, actor: 'test', overrides };
          const workflowId = `${job}-${door}-${id}`;
          await client.workflow.start('tick', { workflowId, taskQueue: 'onceper', args: [{ job, start }] });
        },
        startOwner: () => Promise.resolve(),
        isCompleted: () => Promise.resolve(false),
        isRemembered: () => Promise.resolve(true),
        anchorOutside: () => Promise.resolve(null),
        onWaiting: () => Promise.reject(new Error('killed')),
      },
      '1970-01-01T00:00:00Z',
    );
    await expect(killed).rejects.toThrow('killed');
    await gateway.close();
    expect(await readFreeze(db)).not.toBeNull();
    const printed = await reconcile(url, gatewayUrl);
    expect(documentOf(printed)).toMatchObject({ kind: 'thawed', known: 6 });
  });

  test('settles again a month that paid nobody, so that its next start is not taken for another restore', async () => {
    const { url: gatewayUrl } = await bank.start();
    const { url: gone } = await freshLedger();
    const { client } = await workOn(gone);
    const start = { id: 'one', door: 'run', scheduledAt: '2026-09-01T02:00:00Z', actor: 'a', overrides: {} };
    await client.workflow.execute('tick', { workflowId: 't', taskQueue: 'onceper', args: [{ job: 'tiny', start }] });
    await client.workflow.getHandle(AUGUST).result();
    const { url, db } = await freshLedger();
    await workOn(url);
    await freezeDelivery(db, 'a test');
    expect(documentOf(await reconcile(url, gatewayUrl))).toMatchObject({ kind: 'thawed', known: 0 });
    expect(await actionByKey(db, AUGUST)).toMatchObject({ state: 'done' });
    expect(await actionByKey(db, SEPTEMBER)).toBeNull();
  });

  test('ends where a person must act, and says what they type', async () => {
    const { url: gatewayUrl } = await bank.start();
    await settleAndPay(gatewayUrl);
    const { url, db } = await freshLedger();
    const empty = jobOf(3, { inspect: () => Promise.resolve({ kind: 'held', code: 'empty', reason: 'no rows' }) });
    await workOn(url, empty);
    const printed = await reconcile(url, gatewayUrl, empty);
    expect(printed.code).toBe(6);
    const { waiting } = documentOf<Extract<Reconciled, { kind: 'still_frozen' }>>(printed);
    expect(waiting).toMatchObject([
      { key: AUGUST, state: 'held' },
      { key: SEPTEMBER, state: 'deferred', goesOn: false },
    ]);
    expect(waiting[0]?.reason).toContain('npx onceper run --release');
    expect(await readFreeze(db)).not.toBeNull();
  });

  test('never calls whole a month that was settled again from fewer rows', async () => {
    const { url: gatewayUrl } = await bank.start();
    await settleAndPay(gatewayUrl);
    const { url, db } = await freshLedger();
    await workOn(url, jobOf(2));
    const printed = await reconcile(url, gatewayUrl, jobOf(2));
    expect(printed.code).toBe(6);
    expect(documentOf(printed)).toMatchObject({ kind: 'still_frozen', waiting: [{ key: AUGUST }, { key: SEPTEMBER }] });
    expect(await readFreeze(db)).not.toBeNull();
  });
});

describe('a comparison with the counterparty', () => {
  test('names every number that was paid twice, and ends 6', async () => {
    const simulator = await bank.start({ forgetAfterMs: 0 });
    const { url, db } = await settleAndPay(simulator.url);
    const number = `${AUGUST}:s-0001:GBP:payout`;
    await send(simulator.url, number, number);
    for (const isFrozen of [false, true]) {
      if (isFrozen) await freezeDelivery(db, 'a test');
      const printed = await reconcile(url, simulator.url);
      expect(printed.code).toBe(6);
      expect(documentOf(printed)).toMatchObject({ known: 8, twice: [{ number, transfers: 3 }] });
    }
  });

  test('thaws nothing where the list lacks what this ledger has paid', async () => {
    const { url, db } = await settleAndPay((await bank.start()).url);
    await freezeDelivery(db, 'a test');
    const forgetful = createServer((_request, response) => response.end(JSON.stringify({ data: [], has_more: false })));
    const gatewayUrl = await listen(forgetful);
    const printed = await reconcile(url, gatewayUrl);
    expect(printed.code).toBe(6);
    const { kind, unlisted } = documentOf<Reconciled>(printed);
    expect(kind).toBe('still_frozen');
    expect(unlisted).toHaveLength(6);
    expect(await readFreeze(db)).not.toBeNull();
    forgetful.close();
  });

  test('ends with an error at a list that ignores where the last page ended', async () => {
    const { url, db } = await freshLedger();
    await workOn(url);
    await freezeDelivery(db, 'a test');
    let calls = 0;
    const transfer = {
      id: 'tr_1',
      status: 'succeeded',
      reference: 'x',
      amount: '1',
      currency: 'GBP',
      destination: 'm',
    };
    const deaf = createServer((_request, response) => {
      calls += 1;
      response.end(JSON.stringify({ data: [transfer], has_more: true }));
    });
    const printed = await reconcile(url, await listen(deaf));
    expect(printed.code).toBe(1);
    expect(documentOf<ErrorDocument>(printed).error.code).toBe('list_stands_still');
    expect(calls).toBe(2);
    expect(await readFreeze(db)).not.toBeNull();
    deaf.close();
  });

  test('leaves aside references that no run can have sent: of a period that has not ended, or before the first', async () => {
    const simulator = await bank.start();
    const { url, db } = await settleAndPay(simulator.url);
    const numbers = ['tiny:2099-01', 'tiny:2020-01', 'tiny:2026-13'].map((key) => `${key}:s-0001:GBP:payout`);
    await send(simulator.url, ...numbers, 'other:2026-08:s-0001:GBP:payout');
    expect(documentOf(await reconcile(url, simulator.url))).toMatchObject({ kind: 'not_frozen', known: 6, lost: [] });
    await freezeDelivery(db, 'a test');
    const printed = await reconcile(url, simulator.url);
    expect(documentOf(printed)).toMatchObject({ kind: 'thawed', known: 6, lost: [], impossible: numbers });
    expect(printed.code).toBe(0);
  });
});

async function listen(server: ReturnType<typeof createServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await waitFor(() => Promise.resolve(server.listening), { what: 'the server' });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
