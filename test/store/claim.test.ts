import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { OnceperError } from '../../src/kernel/error.ts';
import { leaseTimes } from '../../src/kernel/lease.ts';
import { periodClosedBy } from '../../src/kernel/period.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import { closeAction, renewLease } from '../../src/store/close.ts';
import type { Database, transaction } from '../../src/store/database.ts';
import { performSlice } from '../../src/store/slices.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import {
  claim,
  close,
  endAttempt,
  mustClaim,
  openRunOf,
  performOne,
  servicesFor,
  testPool,
} from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';

const LEASE_MS = 1_000;
let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url, 40);
  await installTinyJob(db, { leaseSeconds: LEASE_MS / 1000 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

let month = 0;
let scheduledAt = '';
let key = '';
beforeEach(() => {
  month += 1;
  const at = { year: 2021 + Math.floor(month / 12), month: (month % 12) + 1 };
  scheduledAt = `${at.year}-${String(at.month).padStart(2, '0')}-01T02:00:00Z`;
  key = `tiny:${periodClosedBy(scheduledAt, { kind: 'month', zone: 'UTC' })}`;
});

function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

async function leaseEnds(): Promise<void> {
  await waitFor(async () => ((await actionByKey(db, key))?.leaseLeftMs ?? 1) <= 0, { what: 'the end of the lease' });
}

async function rowsOf(table: string): Promise<number> {
  const { rows } = await db.query<{ n: number }>(`select count(*)::int4 as n from tiny.${table} where key = $1`, [key]);
  return rows[0]?.n ?? -1;
}

test('the first grant seals the period once, stores the plan and raises the fence to one', async () => {
  const services = servicesFor(db, [createTinyJob(3)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const grant = await mustClaim(services, { run });
  expect(grant).toMatchObject({ key, fence: '1', attempt: 1, slices: [0, 1, 2] });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'running', fence: 1n, ownerPass: 1 });
  expect(await rowsOf('seal')).toBe(1);
});

test('a claim executed twice by one pass gives its grant back, in parallel too', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const asked = Array.from({ length: 10 }, () => claim(services, { run, execution: 'e', pass: 1 }));
  const claims = await Promise.all(asked);
  expect(new Set(claims.map((one) => (one.kind === 'granted' ? one.fence : one.kind)))).toEqual(new Set(['1']));
  expect(await attemptsOfKey(db, key)).toHaveLength(1);
});

test('each slice is performed once, however often it is asked for', async () => {
  const services = servicesFor(db, [createTinyJob(4)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const grant = await mustClaim(services, { run });
  const asked = [0, 1, 2, 3, 0, 1, 2, 3].map((slice) => performOne(services, grant, slice, LEASE_MS));
  const kinds = (await Promise.all(asked)).map((one) => one.kind).sort();
  expect(kinds).toEqual([...Array(4).fill('already_done'), ...Array(4).fill('performed')]);
  expect(await rowsOf('entry')).toBe(4);
});

test('close is refused while a slice is left, and executed twice it gives the stored document', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const grant = await mustClaim(services, { run });
  await performOne(services, grant, 0, LEASE_MS);
  expect(await close(services, grant)).toEqual({ kind: 'slices_left', left: 1 });
  await performOne(services, grant, 1, LEASE_MS);
  const [first, second] = [await close(services, grant), await close(services, grant)];
  expect(first).toEqual(second);
  expect(first.kind).toBe('done');
  expect(await rowsOf('document')).toBe(1);
  expect(await actionByKey(db, key)).toMatchObject({ state: 'done', delivering: true });
});

test('a live lease of another execution answers busy with its end; once it ended the next execution takes over', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const first = await mustClaim(services, { run, execution: 'first' });
  await performOne(services, first, 0, LEASE_MS);
  const busy = await claim(services, { run, execution: 'second', pass: 1 });
  expect(busy).toMatchObject({ kind: 'busy' });
  await leaseEnds();
  const second = await mustClaim(services, { run, execution: 'second' });
  expect(second).toMatchObject({ fence: '2', attempt: 2, slices: [1] });
  const outcomes = (await attemptsOfKey(db, key)).map((attempt) => [attempt.outcome, attempt.slicesFinished]);
  expect(outcomes).toEqual([
    ['lease_expired', 1],
    [null, 0],
  ]);
});

test('a higher pass of the same execution takes a live lease at once; a zombie claim of the lower pass never takes it back', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const { run } = await openRunOf(services, { scheduledAt });
  await mustClaim(services, { run, pass: 1 });
  const second = await mustClaim(services, { run, pass: 2 });
  expect(second).toMatchObject({ fence: '2', attempt: 2 });
  expect(await claim(services, { run, execution: 'execution-1', pass: 1 })).toMatchObject({
    kind: 'superseded',
    pass: 2,
  });
  expect((await attemptsOfKey(db, key)).map((attempt) => attempt.outcome)).toEqual(['superseded', null]);
  expect((await actionByKey(db, key))?.fence).toBe(2n);
});

test('an earlier holder writes nothing: its slice, renewal, close and end each touch no row', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const old = await mustClaim(services, { run, pass: 1 });
  await performOne(services, old, 0, LEASE_MS);
  const now = await mustClaim(services, { run, pass: 2 });
  const grant = { key, fence: 1n, times: leaseTimes(LEASE_MS) };
  expect(await performOne(services, old, 1, LEASE_MS)).toEqual({ kind: 'lease_lost' });
  expect(await renewLease(db, grant)).toBe(false);
  const end = { key, fence: old.fence, outcome: 'failed', code: 'late', detail: null, slicesBegun: 1 } as const;
  expect(await endAttempt(services, end)).toEqual({ kind: 'moved_on' });
  await performOne(services, now, 1, LEASE_MS);
  expect(await close(services, old)).toEqual({ kind: 'lease_lost' });
  expect(await rowsOf('document')).toBe(0);
  expect(await close(services, now)).toMatchObject({ kind: 'done' });
});

test('a takeover waits for the slice in flight and keeps what it committed', async () => {
  const inside = gate();
  const goOn = gate();
  const perform = async () => {
    inside.open();
    await goOn.opened;
  };
  const slow = servicesFor(db, [createTinyJob(1, { perform })]);
  const { run } = await openRunOf(slow, { scheduledAt });
  const old = await mustClaim(slow, { run, pass: 1 });
  const slice = performOne(slow, old, 0, 60_000);
  await inside.opened;
  const services = servicesFor(db, [createTinyJob(1)]);
  const taken = mustClaim(services, { run, pass: 2 });
  await waitFor(() => isBlocked(), { what: 'the takeover to wait for the slice' });
  goOn.open();
  expect(await slice).toEqual({ kind: 'performed' });
  expect(await taken).toMatchObject({ fence: '2', slices: [] });
});

async function isBlocked(): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
  );
  return rowCount > 0;
}

test('a zombie that begins slices and renewals as fast as it can does not hold the next pass off', async () => {
  const services = servicesFor(db, [createTinyJob(2_000)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const old = await mustClaim(services, { run, pass: 1 });
  let zombie = true;
  let begun = 0;
  const storm = Array.from({ length: 6 }, async (_, lane) => {
    for (let slice = lane; zombie && slice < 2_000; slice += 6) {
      await performOne(services, old, slice, LEASE_MS);
      await renewLease(db, { key, fence: 1n, times: leaseTimes(LEASE_MS) });
      begun += 1;
    }
  });
  await waitFor(() => begun > 50, { what: 'the storm' });
  const asked = performance.now();
  await mustClaim(services, { run, pass: 2 });
  const waited = performance.now() - asked;
  zombie = false;
  await Promise.all(storm);
  expect(waited).toBeLessThan(1_000);
});

test('a slice that the server ends rolls back whole and is performed by the next attempt', async () => {
  const perform = async (tx: Parameters<Parameters<typeof transaction>[2]>[0]) => {
    const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
    await db.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    await tx.query('select 1');
  };
  const broken = servicesFor(db, [createTinyJob(1, { perform })]);
  const { run } = await openRunOf(broken, { scheduledAt });
  const first = await mustClaim(broken, { run, pass: 1 });
  await expect(performOne(broken, first, 0, LEASE_MS)).rejects.toMatchObject({ code: 'connection_lost' });
  expect(await rowsOf('entry')).toBe(0);
  const services = servicesFor(db, [createTinyJob(1)]);
  const second = await mustClaim(services, { run, pass: 2 });
  await performOne(services, second, 0, LEASE_MS);
  expect(await close(services, second)).toMatchObject({ kind: 'done' });
});

test('a seal that the job refuses fails the attempt with its code and leaves the period open', async () => {
  let refuse = true;
  const seal = () => {
    const refusal = new OnceperError({ code: 'no_fee_rule', message: 'no fee rule for XYZ', remedy: 'add one' });
    return refuse ? Promise.reject(refusal) : Promise.resolve();
  };
  const services = servicesFor(db, [createTinyJob(1, { seal })]);
  const { run } = await openRunOf(services, { scheduledAt });
  const refused = await claim(services, { run, execution: 'e', pass: 1 });
  expect(refused).toMatchObject({ kind: 'failed', code: 'no_fee_rule', next: { kind: 'again' } });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'failed', sealedAt: null, fence: 1n });
  expect(await rowsOf('seal')).toBe(0);
  refuse = false;
  expect(await claim(services, { run, execution: 'e', pass: 2 })).toMatchObject({
    kind: 'granted',
    fence: '2',
    slices: [0],
  });
  expect((await attemptsOfKey(db, key)).map((attempt) => attempt.outcome)).toEqual(['failed', null]);
});

test('a lease that ended takes no slice, no renewal and no close, though nobody took over', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const grant = await mustClaim(services, { run });
  await leaseEnds();
  expect(await performOne(services, grant, 0, LEASE_MS)).toEqual({ kind: 'lease_lost' });
  expect(await renewLease(db, { key, fence: 1n, times: leaseTimes(LEASE_MS) })).toBe(false);
});

test('an attempt that lost its worker costs nothing of the budget, one that finished no slice does', async () => {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const end = async (pass: number, outcome: 'worker_lost' | 'shutdown' | 'failed') => {
    const grant = await mustClaim(services, { run, pass });
    const code = outcome === 'failed' ? 'boom' : null;
    return endAttempt(services, { key, fence: grant.fence, outcome, code, detail: null, slicesBegun: 1 });
  };
  for (let pass = 1; pass <= 6; pass += 1) {
    expect(await end(pass, pass % 2 === 0 ? 'shutdown' : 'worker_lost')).toEqual({
      kind: 'again',
      afterMs: 0,
      spent: 0,
    });
  }
  expect(await end(7, 'failed')).toEqual({ kind: 'again', afterMs: 1_000, spent: 1 });
  expect(await end(8, 'failed')).toEqual({ kind: 'again', afterMs: 2_000, spent: 2 });
  expect(await end(9, 'failed')).toEqual({ kind: 'exhausted', spent: 3 });
});

test('two closes of one key at once, by a zombie and by its successor, leave one document', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const old = await mustClaim(services, { run, pass: 1 });
  await performOne(services, old, 0, LEASE_MS);
  const now = await mustClaim(services, { run, pass: 2 });
  const closed = await Promise.all([close(services, old), close(services, now)]);
  expect(closed[1]).toMatchObject({ kind: 'done' });
  expect(['done', 'lease_lost']).toContain(closed[0].kind);
  expect(await rowsOf('document')).toBe(1);
});

test('an answer to COMMIT that is lost is re-read by key: the slice is done, the close gives its document', async () => {
  const services = servicesFor(db, [createTinyJob(1)]);
  const { run } = await openRunOf(services, { scheduledAt });
  const grant = await mustClaim(services, { run });
  const held = { key, fence: 1n, times: leaseTimes(LEASE_MS) };
  await performSlice(db, held, 0, () => Promise.resolve({ result: {}, effects: null }));
  expect(await performSlice(db, held, 0, () => Promise.reject(new Error('never called')))).toEqual({
    kind: 'already_done',
  });
  await closeAction(db, held, () => Promise.resolve({ document: { id: 'd' } }));
  expect(await close(services, grant)).toEqual({ kind: 'done', result: { document: { id: 'd' } } });
});
