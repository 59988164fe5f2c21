import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { leaseTimes } from '../../src/kernel/lease.ts';
import { renewLease } from '../../src/store/close.ts';
import type { Database } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claim, close, mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';

let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  database = await createTestDatabase();
  db = testPool(database.url, 30);
  await installTinyJob(db);
});
afterAll(async () => {
  await db.close();
  await database.drop();
});

const monthAt = (round: number) =>
  `${2021 + Math.floor(round / 12)}-${String((round % 12) + 1).padStart(2, '0')}-01T02:00:00Z`;

test('a zombie pass that begins slices and renewals as fast as it can holds the next pass off for less than a second, 20 of 20', async () => {
  const services = servicesFor(db, [createTinyJob(3_000)]);
  const waits: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const { run, key } = await openRunOf(services, { scheduledAt: monthAt(round) });
    const old = await mustClaim(services, { run, pass: 1 });
    const grant = { key: key ?? '', fence: 1n, times: leaseTimes(30_000) };
    let [zombie, begun] = [true, 0];
    const storm = Array.from({ length: 6 }, async (_, lane) => {
      for (let slice = lane; zombie && slice < 3_000; slice += 6) {
        await performOne(services, old, slice);
        await renewLease(db, grant);
        begun += 1;
      }
    });
    await waitFor(() => begun > 30, { what: 'the storm' });
    const asked = performance.now();
    await mustClaim(services, { run, pass: 2 });
    waits.push(performance.now() - asked);
    const late = await claim(services, { run, execution: 'execution-1', pass: 1 });
    expect(late).toMatchObject({ kind: 'superseded' });
    zombie = false;
    await Promise.all(storm);
  }
  process.stderr.write(`grants after ${waits.map((ms) => Math.round(ms)).join(', ')} ms\n`);
  expect(waits.filter((ms) => ms > 1_000)).toEqual([]);
}, 240_000);

test('ten thousand hits on a done key write no WAL, and a new start id its run row alone', async (context) => {
  const { rows } = await db.query<{ version: number }>(`select current_setting('server_version_num')::int4 as version`);
  context.skip((rows[0]?.version ?? 0) < 180_000, 'PostgreSQL before 18 does not count the WAL of one backend');
  const one = testPool(database.url, 1);
  try {
    const services = servicesFor(one, [createTinyJob(0)]);
    const scheduledAt = monthAt(40);
    const first = await openRunOf(services, { scheduledAt });
    await close(services, await mustClaim(services, { run: first.run }));
    const startId = randomUUID();
    await openRunOf(services, { startId, scheduledAt });
    for (const table of ['action', 'run', 'rule', 'job']) await one.query(`vacuum onceper.${table}`);
    const before = await walOf(one);
    for (let hit = 0; hit < 10_000; hit += 1) await openRunOf(services, { startId, scheduledAt });
    expect(await walOf(one)).toEqual(before);
    await openRunOf(services, { scheduledAt });
    const row = await walOf(one);
    process.stderr.write(
      `a new start id of a done key: ${row.bytes - before.bytes} bytes in ${row.records - before.records} records\n`,
    );
    expect(row.records - before.records).toBeLessThan(12n);
  } finally {
    await one.close();
  }
}, 120_000);

async function walOf(one: Database): Promise<{ records: bigint; bytes: bigint }> {
  await one.query('select pg_stat_force_next_flush()');
  const { rows } = await one.query<{ records: bigint; bytes: bigint }>(
    `select wal_records as records, wal_bytes::bigint as bytes from pg_stat_get_backend_wal(pg_backend_pid())`,
  );
  return rows[0] ?? { records: 0n, bytes: 0n };
}
