import { nominalTimeOf } from '../jobs/occasion.ts';
import { parseRule } from '../jobs/rule.ts';
import { lastPlace } from '../jobs/settlement/hold-line.ts';
import { businessKey } from '../kernel/key.ts';
import { leaseTimes } from '../kernel/lease.ts';
import { backfillCommand } from '../ops/commands.ts';
import { applyJobSchedule } from '../ops/schedule.ts';
import { actionByKey } from '../store/actions.ts';
import { activeRule } from '../store/rules.ts';
import { type Drill, type DrillTools, fact } from './drill.ts';
import { executedTransfers } from './facts.ts';
import { delivered, secondsUntilDone } from './key-end.ts';
import { holdSlice } from './lose-connection.ts';
import { type OwnTemporal, startOwnTemporal } from './own-temporal.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

const LEASE_SECONDS = 10;

/**
 * Temporal forgets everything while a month is half settled: its file is deleted, the schedule applied again, every month
 * backfilled again. PostgreSQL remembers: what was done stays done, what was half-way is finished.
 */
export const temporalErased: Drill = {
  name: 'temporal-erased',
  fault: "Temporal's whole state is deleted half-way through a month, and every month is backfilled again",
  guard: 'PostgreSQL alone decides what is done, and a tick that finds a key unfinished starts its owner',
  async run(tools) {
    const temporal = await startOwnTemporal(tools);
    try {
      return await drill(tools, temporal);
    } finally {
      await temporal.stop();
    }
  },
};

async function drill(tools: DrillTools, temporal: OwnTemporal) {
  const stage = await tools.setStage({ temporalAddress: temporal.address, namespace: 'default' });
  const rule = { leaseSeconds: LEASE_SECONDS };
  const sample = await importSample(stage, { merchants: 60, months: 4, subjectsPerSlice: 10, rule });
  await stage.openGateway();
  const [first] = await Promise.all([stage.start('worker'), stage.start('relay')]);
  await applySchedule(stage, sample);
  await backfill(stage, sample, sample.months.slice(0, -1));
  await untilDone(stage, sample.months.slice(0, -1));
  const halfWay = await holdHalfWay(stage, sample);
  await first.kill();
  await halfWay.letGo();
  tools.tell(`${sample.last} is half-way, and its worker is dead: Temporal is erased now`);
  const before = await counts(stage);
  await temporal.erase();
  await stage.start('worker');
  await applySchedule(stage, sample);
  const times = leaseTimes(LEASE_SECONDS * 1000);
  const bound = (times.lease + times.transactionTimeout) / 1000 + 10;
  await backfill(stage, sample, sample.months);
  const seconds = await secondsUntilDone(stage, sample.key, (bound + 20) * 1000);
  if (seconds !== null) await delivered(stage, sample.key);
  await until('every tick to be recorded', async () => (await counts(stage)).duplicates >= 3, 60_000);
  const after = await counts(stage);
  tools.tell(`finished ${seconds?.toFixed(1) ?? 'not'} s after the new backfill; the bound is ${bound} s`);
  const lastPaid = executedTransfers(stage.journal, `${sample.key}:`);
  const all = executedTransfers(stage.journal, 'settlement:');
  return [
    fact('months done before', 3, before.documents),
    fact('documents after', 4, after.documents),
    fact('new transfers for months that were done', 0, all.executed - lastPaid.executed - before.transfers),
    fact('numbers executed twice', 0, all.twice),
    fact('runs of done months answered as duplicates', 3, after.duplicates),
    fact('the half-way month was finished', 'within the bound', judged(seconds, bound)),
  ];
}

function judged(seconds: number | null, bound: number): string {
  if (seconds === null) return 'not at all';
  return seconds <= bound ? 'within the bound' : `after ${seconds} s`;
}

/** The last month's run stands in the middle of a slice, with other slices done. */
async function holdHalfWay(stage: Stage, sample: SampleMonths) {
  const place = await lastPlace(stage.db, sample.last);
  if (place === null) throw new Error('the sample has no row in its last month');
  const held = await holdSlice(stage.db, sample.key, sample.last, place);
  await startRun(stage, sample);
  await held.untilHeld();
  return held;
}

async function applySchedule(stage: Stage, { registry }: SampleMonths): Promise<void> {
  await applyJobSchedule(stage.db, stage.client, {
    registry,
    job: 'settlement',
    taskQueue: stage.taskQueue,
    actor: stage.actor,
  });
}

async function backfill(stage: Stage, sample: SampleMonths, months: readonly string[]): Promise<void> {
  const stored = await activeRule(stage.db, 'settlement');
  const rule = parseRule(stored?.body, 'the drill');
  const from = nominalTimeOf(rule, months[0] ?? sample.last);
  const to = nominalTimeOf(rule, months.at(-1) ?? sample.last);
  await typed(backfillCommand('settlement', from, to), stage.environment);
}

async function untilDone(stage: Stage, months: readonly string[]): Promise<void> {
  for (const month of months) {
    const key = businessKey('settlement', month);
    await until(`${key} to be done`, async () => (await actionByKey(stage.db, key))?.state === 'done', 90_000);
  }
}

async function counts(stage: Stage): Promise<{ documents: number; transfers: number; duplicates: number }> {
  const { rows } = await stage.db.query<{ documents: number; duplicates: number }>(
    `select (select count(*)::int4 from onceper.action where state = 'done') as documents,
            (select count(*)::int4 from onceper.run where decision = 'duplicate') as duplicates`,
  );
  const { documents = 0, duplicates = 0 } = rows[0] ?? {};
  return { documents, duplicates, transfers: executedTransfers(stage.journal, 'settlement:').executed };
}
