import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { refuseUnsafeTerms } from '../../src/app/retention.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import type { Database } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { testPool } from '../support/ledger.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { emptyHome } from './command-line.ts';

let database: TestDatabase;
let db: Database;
let namespace: TestNamespace;
let client: Client;
let job = '';
let jobs = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url, 2);
  namespace = await createTestNamespace();
  const connection = await Connection.connect({ address: namespace.address });
  client = new Client({ connection, namespace: namespace.namespace });
});
afterAll(async () => {
  await client.connection.close();
  await db.close();
  await database.drop();
});
beforeEach(() => {
  jobs += 1;
  job = `kept-${jobs}`;
});

/** Keeps keys for ten days, which is enough for all that the test does not lengthen. */
async function install(changes: Readonly<Record<string, unknown>> = {}, catchupWindow = '5 days'): Promise<void> {
  await installTinyJob(db, { job, keepKeysDays: 10, latenessDays: 3, ...changes });
  await client.schedule.create({
    scheduleId: job,
    spec: {},
    action: { type: 'startWorkflow', workflowType: 'tick', taskQueue: 'onceper', args: [] },
    policies: { catchupWindow: catchupWindow as '5 days' },
  });
}

const SHORT = { ONCEPER_WEBHOOK_REPEATS_FOR: '5d' };
/** What the start of a worker with these variables asks first. */
const start = (variables: Readonly<Record<string, string>> = {}) =>
  refuseUnsafeTerms(loadConfig({ ONCEPER_HOME: emptyHome, ...SHORT, ...variables }), {
    db,
    client,
    registry: createRegistry([createTinyJob(1, { id: job })]),
  });

test('a worker starts where keys outlive all who may ask for them', async () => {
  await install();
  await expect(start()).resolves.toBeUndefined();
});

test.each([
  ['the schedule’s catch-up window', {}, '11 days', {}],
  ['the namespace’s retention of closed workflows', { keepKeysDays: 1, latenessDays: 1 }, '1 hour', { namespace: 2 }],
  ['the rule’s lateness', { latenessDays: 11 }, '5 days', {}],
  ['any lateness, since the rule sets none', { latenessDays: null }, '5 days', {}],
  ['the latest retry of a payout', {}, '5 days', { ONCEPER_GATEWAY_TRY_FOR: '10d' }],
  ['the latest retry of a message to a receiver', {}, '5 days', { ONCEPER_RECEIVER_TRY_FOR: '10d' }],
  ['webhooks that the counterparty repeats', {}, '5 days', { ONCEPER_WEBHOOK_REPEATS_FOR: '11d' }],
])('a worker does not start where keys are kept for less than %s', async (asker, rule, window, given) => {
  await install(rule, window);
  const { namespace: days, ...variables } = given as Readonly<Record<string, string>> & { namespace?: number };
  const all = days === undefined ? variables : ALL_SHORT;
  if (days !== undefined) await keepClosedFor(days);
  await expect(start(all)).rejects.toMatchObject({
    code: 'retention_too_short',
    message: expect.stringContaining(asker.startsWith('any') ? 'sets no lateness' : `${asker} may ask for one for`),
    at: `retention of ${job}`,
  });
});

const ALL_SHORT = {
  ONCEPER_GATEWAY_TRY_FOR: '1h',
  ONCEPER_GATEWAY_LOOK_UPS: '1',
  ONCEPER_RECEIVER_TRY_FOR: '1h',
  ONCEPER_WEBHOOK_REPEATS_FOR: '1d',
};

async function keepClosedFor(days: number): Promise<void> {
  await client.workflowService.updateNamespace({
    namespace: namespace.namespace,
    config: { workflowExecutionRetentionTtl: { seconds: (days * 86_400) as unknown as Long } },
  });
}

test('a worker does not start where the visibility delay leaves no moment before the key window for a re-send', async () => {
  await install();
  const terms = { ONCEPER_GATEWAY_KEY_WINDOW: '60s', ONCEPER_GATEWAY_VISIBILITY_DELAY: '55s' };
  await expect(start(terms)).rejects.toMatchObject({ code: 'gateway_terms' });
});
