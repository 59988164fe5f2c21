import { beforeEach, describe, expect, test } from 'vitest';
import { deliveryState } from '../../../activities/delivery.ts';
import { contextOf } from '../../../activities/job-context.ts';
import type { ActivityServices } from '../../../activities/services.ts';
import { parseRule } from '../../../src/jobs/rule.ts';
import { leaseTimes } from '../../../src/kernel/lease.ts';
import { loadFirstRule } from '../../../src/store/rules.ts';
import { performSlice } from '../../../src/store/slices.ts';
import { forced } from '../../support/forced.ts';
import { close, mustClaim, openRunOf, servicesFor } from '../../support/ledger.ts';
import { csv } from './rows.ts';
import { Bench, feesOf, job } from './settling.ts';

const RULE = {
  job: 'settlement',
  zone: 'Europe/London',
  period: 'month',
  first: '2026-01',
  calendar: { dayOfMonth: 1, hour: 2, minute: 0 },
  subjectsPerSlice: 1,
  parameters: { fees: feesOf('GBP') },
};
const bench = Bench.forThisFile();
let loaded = false;

beforeEach(async () => {
  if (!loaded) await loadFirstRule(bench.db, { job: parseRule(RULE, 'here').job, body: RULE, loadedBy: 'test' });
  loaded = true;
});

const next = (period: string) => `2026-${String(Number(period.slice(5)) + 1).padStart(2, '0')}`;

/** Settles a month by the activities of a worker that tells these receivers. */
async function settle(period: string, receivers: readonly string[]): Promise<string> {
  const audience = { receivers, source: 'https://payments.example/onceper' };
  const services: ActivityServices = { ...servicesFor(bench.db, [job]), audience };
  await bench.importText(csv(`m-1 ${period}-05 10.00 GBP`, `m-2 ${period}-06 2.50 GBP`), {}, `${period}.csv`);
  const { run } = await openRunOf(services, { job: 'settlement', scheduledAt: `${next(period)}-01T02:00:00Z` });
  const grant = await mustClaim(services, { run, execution: `execution-${period}` });
  const { contextUnder } = await contextOf(bench.db, services.registry, grant.key);
  const fence = BigInt(grant.fence);
  for (const slice of grant.slices) {
    const held = { key: grant.key, fence, times: leaseTimes(30_000) };
    await performSlice(bench.db, held, slice, (tx, range) => job.perform(tx, contextUnder(fence), range));
  }
  expect(await close(services, grant)).toMatchObject({ kind: 'done' });
  return grant.key;
}

async function noticesOf(key: string) {
  const { rows } = await bench.db.query<{ number: string; destination: string; waitsFor: string | null; body: string }>(
    `select number, destination, waits_for as "waitsFor", body from onceper.outbox
      where key = $1 and effect = 'completed' order by number`,
    [key],
  );
  return rows;
}

describe('a settlement that closes', () => {
  test('is told to each receiver as a CloudEvent that names the document and no merchant', async () => {
    const key = await settle('2026-01', ['accounting', 'archive']);
    const [first, second] = await noticesOf(key);
    const number = 'settlement:2026-01:accounting:XXX:completed';
    expect(first).toMatchObject({ number, destination: 'webhook:accounting', waitsFor: null });
    expect(second).toMatchObject({ destination: 'webhook:archive', waitsFor: null });
    const { rows } = await bench.db.query<{ id: string; hash: string; totals: unknown; closed: string }>(
      `select id, hash, totals, to_char(closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as closed
         from settlement.document where key = $1`,
      [key],
    );
    const [document] = rows;
    expect(JSON.parse(first?.body ?? '')).toEqual({
      specversion: '1.0',
      id: number,
      source: 'https://payments.example/onceper',
      type: 'settlement.completed',
      subject: 'settlement:2026-01',
      time: document?.closed,
      datacontenttype: 'application/json',
      data: {
        key,
        period: '2026-01',
        hash: document?.hash,
        document: { id: document?.id, totals: document?.totals },
      },
    });
    expect(document?.totals).toMatchObject({ GBP: { payout: '1250' } });
    expect(first?.body).not.toContain('m-1');
  });

  test('is told in the order of the months, also to a receiver that was new or left out for a time', async () => {
    await settle('2026-02', ['accounting']);
    const [march] = await noticesOf(await settle('2026-03', ['accounting', 'new-one']));
    expect(march?.waitsFor).toBe('settlement:2026-02:accounting:XXX:completed');
    const april = await noticesOf(await settle('2026-04', ['archive', 'new-one']));
    expect(april.map(({ waitsFor }) => waitsFor)).toEqual([
      'settlement:2026-01:archive:XXX:completed',
      'settlement:2026-03:new-one:XXX:completed',
    ]);
  });

  test('is delivered when its payouts are, whatever its receivers do', async () => {
    const key = await settle('2026-05', ['accounting']);
    const services = servicesFor(bench.db, [job]);
    expect(await deliveryState(services, key)).toEqual({ kind: 'delivering', effects: null });
    await forced(
      bench.db,
      `update onceper.outbox set state = 'succeeded', counterparty_id = 'tr', attempts = 1, first_sent_at = clock_timestamp()
        where key = $1 and effect = 'payout'`,
      [key],
    );
    expect(await deliveryState(services, key)).toEqual({ kind: 'delivered', effects: { succeeded: 2 } });
  });
});

test('nobody is told where no receiver is configured', async () => {
  expect(await noticesOf(await settle('2026-06', []))).toEqual([]);
});
