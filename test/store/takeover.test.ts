import { afterAll, beforeAll, expect, test } from 'vitest';
import { leaseTimes } from '../../src/kernel/lease.ts';
import type { Tx } from '../../src/kernel/sql.ts';
import { actionByKey } from '../../src/store/actions.ts';
import type { Database } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claim, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';

const LEASE_MS = 1_000;
/** What `onceper why` prints: the rest of the lease + 0.8 × lease; and a second for a loaded machine. */
const BOUND_MS = LEASE_MS + leaseTimes(LEASE_MS).transactionTimeout + 1_000;

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url);
  await installTinyJob(db, { leaseSeconds: LEASE_MS / 1000 });
});
afterAll(async () => {
  end();
  await db.close();
  await database.drop();
});

let month = 0;
let end = () => {};
/** Keeps the idle holder idle until every test is over; then its connection can go back to the pool. */
const ended = new Promise<void>((resolve) => {
  end = resolve;
});

/** What a holder does in the middle of its slice when it hangs; each is stopped by the server, or by the claim. */
const HOLDERS: [string, (tx: Tx) => Promise<unknown>][] = [
  ['sits in one long statement', (tx) => tx.query('select pg_sleep(20)')],
  [
    'chats in short statements',
    async (tx) => {
      for (let said = 0; said < 200; said += 1) await tx.query('select pg_sleep(0.1)');
    },
  ],
  ['is idle in its transaction', () => ended],
];

test.each(HOLDERS)('a takeover from a holder that %s happens within the bound', async (_, hang) => {
  month += 1;
  const scheduledAt = `2021-${String(month).padStart(2, '0')}-01T02:00:00Z`;
  const hung = { inside: false };
  const perform = async (tx: Tx) => {
    hung.inside = true;
    await hang(tx);
  };
  const holder = servicesFor(db, [createTinyJob(1, { perform })]);
  const { run, key } = await openRunOf(holder, { scheduledAt });
  const grant = await mustClaim(holder, { run, execution: 'holder' });
  const slice = performOne(holder, grant, 0, LEASE_MS);
  slice.catch(() => undefined);
  await waitFor(() => hung.inside, { what: 'the holder to be in its slice' });
  const asked = performance.now();
  const successor = servicesFor(db, [createTinyJob(1)]);
  const taken = await waitFor(
    async () => {
      const claimed = await claim(successor, { run, execution: 'successor', pass: 1 });
      return claimed.kind === 'granted' ? claimed : null;
    },
    { what: 'the takeover', timeoutMs: 15_000 },
  );
  expect(performance.now() - asked).toBeLessThan(BOUND_MS);
  expect(taken).toMatchObject({ fence: '2', slices: [0] });
  expect(await performOne(successor, taken, 0, LEASE_MS)).toEqual({ kind: 'performed' });
  expect((await actionByKey(db, key ?? ''))?.fence).toBe(2n);
});
