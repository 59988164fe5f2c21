import { expect, test } from 'vitest';
import type { ShownBackfill } from '../../src/app/backfill-text.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { runsOfKey } from '../../src/store/runs.ts';
import { documentOf, NOBODY } from '../app/command-line.ts';
import { deliverAll, FAST, gatewayTo } from '../relay/harness.ts';
import { forced } from '../support/forced.ts';
import { close, endAttempt, mustClaim, openRunOf, performOne, servicesFor } from '../support/ledger.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { waive } from '../support/waive.ts';
import { gate, monthly, type Request, useBackfilling } from './backfilling.ts';

const bank = useTestBank();
const people = useBackfilling();

const inState = (shown: ShownBackfill, state: string) => shown.periods.filter((one) => one.state === state);

test('24 days, two at a time, by two dispatchers, cancelled after the fifth: never a third, and the live run goes at once', async () => {
  const { client } = await people.start();
  const { id, digest, plan } = await people.request('daily', '2026-01-01', '2026-01-24');
  expect(plan.periods.map(({ act }) => act)).toEqual(Array.from({ length: 24 }, () => 'run'));
  await people.approve({ id, digest });
  await client.workflow.start('backfill', { taskQueue: 'onceper', workflowId: 'another', args: [{ id }] });
  for (let done = 0; done < 5; done += 1) {
    await waitFor(() => gate.inside.size === 2, { what: 'two days to be under way' });
    const [first = ''] = [...gate.inside.keys()].sort();
    gate.letGo(first);
    await waitFor(() => people.isDone(first), { what: `${first} to be done` });
  }
  await waitFor(() => gate.inside.size === 2, { what: 'two more' });
  const cancelled = await people.bob('backfill', 'cancel', id, '--reason', 'the wrong range', '--json');
  expect(documentOf<ShownBackfill>(cancelled).backfill).toMatchObject({ state: 'cancelling', cancelledBy: 'user:bob' });
  expect(await people.bob('backfill', 'cancel', id, '--reason', 'again')).toMatchObject({
    code: 3,
    err: expect.stringMatching(/^already_over/),
  });

  expect(gate.most).toBe(2);
  const live = people.ann('run', 'daily', '--wait', '--json');
  const liveKey = await waitFor(() => [...gate.inside.keys()].find((key) => key > 'daily:2026-02'), {
    what: 'the live run beside the two of the backfill',
  });
  expect(gate.inside.size).toBe(3);
  gate.letGo(liveKey);
  expect(documentOf(await live)).toMatchObject({ decision: 'admitted', state: 'done' });

  expect(gate.inside.size).toBe(2);
  gate.open();
  const over = await waitFor(
    async () => {
      const shown = await people.show(id);
      return shown.backfill.state === 'cancelled' ? shown : null;
    },
    { what: 'the started days to end' },
  );
  expect(inState(over, 'ended').map(({ outcome }) => outcome)).toEqual(Array.from({ length: 7 }, () => 'done'));
  expect(inState(over, 'cancelled')).toHaveLength(17);
  expect(gate.most).toBe(3);
  const { rows } = await people.db.query<{ n: number }>(`select count(*)::int4 as n from tiny.document`);
  expect(rows[0]?.n).toBe(8);
  await waitFor(async () => (await client.workflow.getHandle('another').describe()).status.name === 'COMPLETED', {
    what: 'the second dispatcher to end too',
  });
});

test('months that are done, half paid, failed half-way and running: nothing, nothing, the rest of it, untouched', async () => {
  const services = servicesFor(people.db, [monthly]);
  const admit = async (month: number) => {
    const scheduledAt = `2026-${String(month + 1).padStart(2, '0')}-01T02:00:00Z`;
    const { run } = await openRunOf(services, { scheduledAt });
    await waive(people.db, run);
    await openRunOf(services, { startId: run, scheduledAt });
    return mustClaim(services, { run });
  };
  const settle = async (month: number) => {
    const grant = await admit(month);
    for (const slice of grant.slices) await performOne(services, grant, slice);
    await close(services, grant);
    return grant.key;
  };
  const gateway = gatewayTo((await bank.start()).url);
  const relay = { db: people.db, jobs: services.registry, gateway };
  const paid = await settle(1);
  expect(await deliverAll(relay, paid)).toEqual({ succeeded: 10 });
  const half = await settle(2);
  expect(await relayOnce(relay, { ...FAST, batch: 3 })).toMatchObject({ succeeded: 3 });
  const failed = await admit(3);
  for (const slice of [0, 1, 2]) await performOne(services, failed, slice);
  const boom = { outcome: 'failed', code: 'boom', detail: null, slicesBegun: 1 } as const;
  await endAttempt(services, { key: failed.key, fence: failed.fence, ...boom });
  await forced(people.db, `update onceper.action set state = 'exhausted' where key = $1`, [failed.key]);
  const running = await admit(4);
  const before = await actionByKey(people.db, running.key);

  await people.start();
  const { id, digest, plan } = await people.request('tiny', '2026-01', '2026-05');
  expect(plan.periods.map(({ period, act }) => `${period} ${act}`)).toEqual([
    '2026-01 nothing',
    '2026-02 nothing',
    '2026-03 resume',
    '2026-04 untouched',
    '2026-05 run',
  ]);
  expect(plan.periods[2]).toMatchObject({ state: 'exhausted', fence: '1', slices: '3 of 10 done' });
  await people.approve({ id, digest });
  await waitFor(async () => (await people.show(id)).backfill.state === 'ended', { what: 'the backfill to end' });
  expect((await people.show(id)).periods.map((one) => `${one.state} ${one.outcome} ${one.keyState}`)).toEqual([
    'left null done',
    'left null done',
    'ended done done',
    'left null running',
    'ended done done',
  ]);

  const { rows: seven } = await people.db.query<{ n: number }>(
    `select count(*)::int4 as n from tiny.entry where key = $1 and fence = 2`,
    [failed.key],
  );
  expect(seven[0]?.n).toBe(7);
  expect(await actionByKey(people.db, running.key)).toMatchObject({
    fence: before?.fence,
    leaseUntil: before?.leaseUntil,
  });
  for (const key of [half, failed.key]) await deliverAll(relay, key);
  expect(await effectCounts(people.db, half)).toEqual({ succeeded: 10 });
  const numbers = [...bank.executed()].filter(([number]) => !number.startsWith('tiny:2026-05'));
  expect(numbers).toHaveLength(30);
  expect(numbers.every(([, times]) => times === 1)).toBe(true);
  const { rows } = await people.db.query<{ key: string }>(
    `select key from onceper.action union select key from onceper.run where key is not null`,
  );
  expect(rows.filter(({ key }) => !/^tiny:2026-0[1-5]$/.test(key))).toEqual([]);
  expect((await runsOfKey(people.db, failed.key)).map(({ trigger, decision }) => `${trigger} ${decision}`)).toEqual([
    'schedule admitted',
    'backfill admitted',
  ]);
  await gateway.close();
});

test('a job that needs its predecessor is backfilled strictly in order', async () => {
  await people.start();
  const asked = await people.request('chain', '2026-01', '2026-05');
  await people.approve(asked);
  await waitFor(async () => (await people.show(asked.id)).backfill.state === 'ended', { what: 'the backfill to end' });
  const { rows } = await people.db.query<{ period: string }>(
    `select period from onceper.action where job = 'chain' and state = 'done' order by done_at`,
  );
  expect(rows.map(({ period }) => period)).toEqual(['2026-01', '2026-02', '2026-03', '2026-04', '2026-05']);
});

test('a range that is malformed, reversed, future, too large or finished is refused before anybody is asked', async () => {
  const refused = async (job: string, from: string, to: string, ...more: string[]) => {
    const printed = await people.ann(
      'backfill',
      'request',
      job,
      '--from',
      from,
      '--to',
      to,
      '--reason',
      'x',
      '--json',
      ...more,
    );
    return [documentOf<{ error: { code: string } }>(printed).error.code, printed.code];
  };
  const nextYear = new Date().getUTCFullYear() + 1;
  expect(await refused('tiny', '2026-13', '2026-13')).toEqual(['malformed_period', 2]);
  expect(await refused('tiny', '2026-7', '2026-08')).toEqual(['malformed_period', 2]);
  expect(await refused('tiny', '2026-08', '2026-07')).toEqual(['malformed_range', 2]);
  expect(await refused('daily', '2026-01-01', '2027-01-02')).toEqual(['range_too_large', 2]);
  expect(await refused('tiny', '2026-01', `${nextYear}-01`)).toEqual(['backfill_refused', 3]);
  expect(await refused('tiny', '2025-12', '2026-01')).toEqual(['backfill_refused', 3]);
  const dry = await people.ann(
    'backfill',
    'request',
    'tiny',
    '--from',
    '2025-12',
    '--to',
    '2026-01',
    '--dry-run',
    '--json',
  );
  expect(dry.code).toBe(3);
  expect(documentOf(dry)).toMatchObject({ plan: { periods: [{ act: 'refused' }, { act: 'run' }] } });
  const { rowCount } = await people.db.query('select from onceper.approval');
  expect(rowCount).toBe(0);
});

test('a month that was done meanwhile makes the approval stale, and nothing of it is started', async () => {
  const services = servicesFor(people.db, [monthly]);
  const { id, digest } = await people.request('tiny', '2026-01', '2026-02');
  const { run } = await openRunOf(services, { scheduledAt: '2026-02-01T02:00:00Z' });
  await waive(people.db, run);
  await openRunOf(services, { startId: run, scheduledAt: '2026-02-01T02:00:00Z' });
  const printed = await people.bob('approvals', 'approve', id, '--digest', digest);
  expect(printed).toMatchObject({ code: 3, err: expect.stringMatching(/^world_moved: periods\[0\]\./) });
  expect((await people.db.query('select from onceper.backfill')).rowCount).toBe(0);
  const again = await people.request('tiny', '2026-01', '2026-02');
  expect(again.plan.periods.map(({ act }) => act)).toEqual(['untouched', 'run']);
});

test('what was approved while Temporal was away is begun by the check of expected periods', async () => {
  const { client } = await people.start();
  gate.open();
  const { id, digest } = await people.request('daily', '2026-01-01', '2026-01-02');
  const away = { TEMPORAL_ADDRESS: NOBODY };
  const approved = await people.bobWith(away, 'approvals', 'approve', id, '--digest', digest);
  expect(approved).toMatchObject({ code: 0, err: expect.stringMatching(/Temporal could not be told/) });
  await people.ann('run', 'daily', '--period', '2026-01-03');
  const late = documentOf<{ approvals: Request[] }>(
    await people.ann('approvals', 'list', '--key', 'daily:2026-01-03', '--json'),
  );
  const [held] = late.approvals;
  await people.bobWith(away, 'approvals', 'approve', held?.id ?? '', '--digest', held?.digest ?? '');
  expect(await actionByKey(people.db, 'daily:2026-01-03')).toBeNull();
  await client.workflow.execute('expect', { taskQueue: 'onceper', workflowId: 'expect-now' });
  for (const day of ['01', '02', '03']) {
    await waitFor(() => people.isDone(`daily:2026-01-${day}`), { what: `the ${day} to be done` });
  }
});
