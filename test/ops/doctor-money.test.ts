import { beforeEach, expect, test } from 'vitest';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import { checkInTransit, checkWebhooks } from '../../src/ops/doctor-money.ts';
import { storeWebhook } from '../../src/store/webhooks.ts';
import { forced } from '../support/forced.ts';
import { insertEffect, insertEffects, TEST_JOB, testRegistry, useTestLedger } from '../support/ledger-rows.ts';

const ledger = useTestLedger();
let key: string;
let books: Record<string, bigint>;

beforeEach(async () => {
  await forced(ledger.db, `update onceper.outbox set state = 'failed' where state <> 'failed'`);
  key = await ledger.freshKey();
});

/** The test job with books of its own. */
function withBooks(): ReturnType<typeof createRegistry> {
  const job: Job = { ...testRegistry().get(TEST_JOB), inTransit: () => Promise.resolve(books) };
  return createRegistry([job]);
}
const check = () => checkInTransit(ledger.db, withBooks(), TEST_JOB);

test('in transit by the books is what the outbox has not finished, whatever unfinished means', async () => {
  const numbers = await insertEffects(ledger.db, key, 5);
  const states = ['pending', 'unknown', 'needs_attention', 'dead', 'failed'];
  await forced(
    ledger.db,
    `update onceper.outbox o set state = n.state from unnest($1::text[], $2::text[]) as n (number, state) where o.number = n.number`,
    [numbers, states],
  );
  books = { GBP: 101n + 102n + 103n + 104n, JPY: 0n };
  expect(await check()).toMatchObject([{ state: 'ok' }]);
  books = { GBP: 101n + 102n + 103n };
  expect(await check()).toMatchObject([
    { state: 'fail', check: 'in transit of payroll', detail: 'GBP 306 by the books, 410 in the outbox' },
  ]);
  books = { GBP: 410n, JPY: 7n };
  expect(await check()).toMatchObject([{ state: 'fail', detail: 'JPY 7 by the books, 0 in the outbox' }]);
});

test('an unfinished effect whose body states no money is told, and fails nothing else', async () => {
  await insertEffect(ledger.db, { key, subject: 'm-1', body: 'no json' });
  await insertEffect(ledger.db, { key, subject: 'm-2' });
  books = { GBP: 1250n };
  expect(await check()).toMatchObject([{ state: 'fail', detail: '1 unfinished effects state no money' }]);
});

test('a job whose effects move no money has no such row', async () => {
  expect(await checkInTransit(ledger.db, testRegistry(), TEST_JOB)).toEqual([]);
});

test('webhooks that nobody could apply are told with their codes', async () => {
  expect(await checkWebhooks(ledger.db)).toMatchObject({ state: 'ok' });
  await storeWebhook(ledger.db, { id: 'msg_1', type: 'transfer.succeeded', number: null, body: '{}' });
  await ledger.db.query(
    `update onceper.webhook set state = 'attention', code = 'unknown_number', decided_at = clock_timestamp()`,
  );
  expect(await checkWebhooks(ledger.db)).toMatchObject({
    state: 'fail',
    detail: '1 could not be applied: unknown_number',
  });
});
