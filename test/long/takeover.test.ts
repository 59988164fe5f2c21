import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { leaseTimes } from '../../src/kernel/lease.ts';
import { renewLease } from '../../src/store/close.ts';
import type { Database } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claim, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';

const ROUNDS = 20;
const LEASE_MS = 2_000;
/** What `onceper why` prints, the rest of the lease + 0.8 × lease, and half a second for the asking itself. */
const SLACK_MS = 500;

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const HOLDERS = [
  ['killed', 'idle', 'SIGKILL'],
  ['stopped in a transaction', 'idle', 'SIGSTOP'],
  ['in a long statement', 'long', null],
  ['chatting in short statements', 'chatty', null],
] as const;

test.each(HOLDERS)(
  `a takeover from a holder that is %s happens within the printed bound, ${ROUNDS} of ${ROUNDS}`,
  async (name, how, signal) => {
    const job = `held-${how}-${signal === null ? 'none' : signal.toLowerCase()}`;
    await installTinyJob(db, { job, leaseSeconds: LEASE_MS / 1000 });
    const services = servicesFor(db, [createTinyJob(1, { id: job })]);
    const waits: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) waits.push(await takeOver(services, job, round, how, signal));
    process.stderr.write(
      `${name}: takeovers after ${waits.map((ms) => Math.round(ms)).join(', ')} ms of waiting beyond the lease\n`,
    );
    const bound = leaseTimes(LEASE_MS).transactionTimeout + SLACK_MS;
    expect(waits.filter((ms) => ms > bound)).toEqual([]);
  },
  300_000,
);

/** Milliseconds from the end of the lease to the grant. */
async function takeOver(
  services: ReturnType<typeof servicesFor>,
  job: string,
  round: number,
  how: string,
  signal: 'SIGKILL' | 'SIGSTOP' | null,
): Promise<number> {
  const scheduledAt = `${2021 + Math.floor(round / 12)}-${String((round % 12) + 1).padStart(2, '0')}-01T02:00:00Z`;
  const { run } = await openRunOf(services, { job, scheduledAt });
  const grant = await mustClaim(services, { run, execution: 'holder' });
  const holder = await startHolder(grant, how);
  try {
    expect(await renewLease(db, { key: grant.key, fence: 1n, times: leaseTimes(LEASE_MS) })).toBe(true);
    const leaseEnds = performance.now() + LEASE_MS;
    if (signal !== null) holder.kill(signal);
    const ask = () => claim(services, { run, execution: 'successor', pass: 1 });
    const taken = await waitFor(
      async () => {
        const claimed = await ask();
        return claimed.kind === 'granted' ? claimed : null;
      },
      { what: `the takeover of round ${round}`, timeoutMs: 20_000 },
    );
    const waited = performance.now() - leaseEnds;
    expect(await performOne(services, taken, 0, LEASE_MS)).toEqual({ kind: 'performed' });
    return waited;
  } finally {
    holder.kill('SIGKILL');
  }
}

async function startHolder(grant: { key: string; fence: string }, how: string): Promise<ChildProcess> {
  const args = [
    '--import',
    'tsx',
    join(import.meta.dirname, 'holder.ts'),
    database.url,
    grant.key,
    grant.fence,
    how,
    String(LEASE_MS),
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout?.on('data', (text: Buffer) => {
    said += text.toString();
  });
  await waitFor(
    async () => {
      // A holder starts slower than this lease lasts: it is renewed until the holder stands in its slice.
      await renewLease(db, { key: grant.key, fence: 1n, times: leaseTimes(LEASE_MS) });
      return said.includes('inside');
    },
    { what: 'the holder to be in its slice', timeoutMs: 20_000 },
  );
  return child;
}
