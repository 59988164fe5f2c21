import { nominalTimeOf } from '../jobs/occasion.ts';
import { parseRule } from '../jobs/rule.ts';
import { compareInstants, instantPlus } from '../kernel/instant.ts';
import type { Instant } from '../kernel/sql.ts';
import { backfillCommand } from '../ops/commands.ts';
import { expectedPeriods } from '../ops/periods.ts';
import { type Applied, applyJobSchedule, listSchedules } from '../ops/schedule.ts';
import { clockOf } from '../store/database.ts';
import { activeRule } from '../store/rules.ts';
import { runsOfKey } from '../store/runs.ts';
import type { Child } from './children.ts';
import { type Drill, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { loggedEvents } from './log-events.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

const REASON = 'audit';
/** A month is due as soon as it ends, so that the drill finds it overdue on whatever day it runs. */
const DUE_AT_ONCE = { calendar: { dayOfMonth: 1, hour: 0, minute: 0 } };

/**
 * An operator pauses the schedule and a due instant passes. Temporal forgets the instant for good and counts it nowhere; the
 * ledger says that the month is missing, the check reports it, and a line settles it while the schedule stays paused.
 */
export const pausedOverMonthEnd: Drill = {
  name: 'paused-over-month-end',
  fault: 'the schedule is paused over the instant that closes a month, and applied again by a deploy meanwhile',
  guard: 'every expected period is looked for in the ledger, and an update of the schedule carries pause and note over',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: 20, months: 1, subjectsPerSlice: 10, rule: DUE_AT_ONCE });
    await stage.openGateway();
    const [worker] = await Promise.all([stage.start('worker'), stage.start('relay')]);
    await applyJobSchedule(stage.db, stage.client, scheduleOf(stage, sample));
    await typed(`npx onceper schedule pause settlement --reason ${REASON}`, stage.environment);
    const passed = await letInstantPass(stage, sample);
    const [listed] = await listSchedules(stage.db, stage.client, {
      ...scheduleOf(stage, sample),
      jobs: ['settlement'],
    });
    const opened = await runsOfKey(stage.db, sample.key);
    tell(`${passed} has passed while the schedule was paused; Temporal counts ${listed?.missedCatchUp} missed`);
    const missing = await standing(stage, sample);
    const overdue = missing === 'missing' ? await overdueEvent(stage, worker, sample) : 'not overdue';
    const applied = await typed('npx onceper schedule apply settlement --json', stage.environment);
    const line = await backfillLine(stage, sample);
    tell(line);
    await typed(line, stage.environment);
    const end = await keyEnd(stage, sample.key);
    await delivered(stage, sample.key);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    return [
      fact('runs opened for the instant', 0, opened.length),
      fact('what Temporal counts: taken, missed', '0, 0', `${listed?.taken}, ${listed?.missedCatchUp}`),
      fact('the month in `onceper periods`', 'missing', missing),
      fact('the expectation check reports the month as', 'missing', overdue),
      fact('the schedule after a deploy', `updated, paused: ${stage.actor}: ${REASON}`, afterDeploy(applied.stdout)),
      fact('the key after the backfill line', 'done', end),
      fact('the month in `onceper periods` after it', 'done', await standing(stage, sample)),
      fact('documents', 1, facts.documents),
      fact('transfers in the journal', facts.payable, facts.transfers),
    ];
  },
};

function scheduleOf({ taskQueue, actor }: Stage, { registry }: SampleMonths) {
  return { registry, job: 'settlement', taskQueue, actor } as const;
}

/** Gives the paused schedule one more instant, two seconds ahead, and waits until well after it. */
async function letInstantPass(stage: Stage, sample: SampleMonths): Promise<Instant> {
  const at = instantPlus(await clockOf(stage.db), { seconds: 3 }).replace(/\.\d+Z$/, 'Z');
  const oneOff = { at, reason: 'the drill', actor: stage.actor };
  await applyJobSchedule(stage.db, stage.client, { ...scheduleOf(stage, sample), oneOff });
  const after = instantPlus(at, { seconds: 3 });
  await until('the instant to pass', async () => compareInstants(await clockOf(stage.db), after) > 0, 30_000);
  return at;
}

/** The month in what `onceper periods` prints. */
async function standing({ db }: Stage, { registry, last }: SampleMonths): Promise<string> {
  const { periods } = await expectedPeriods(db, registry, { job: 'settlement', from: last, to: last });
  return periods[0]?.state ?? 'not listed';
}

/** Lets the check run now and not in five minutes, and reads what it logged about the month. */
async function overdueEvent(stage: Stage, worker: Child, { last }: SampleMonths): Promise<string> {
  await stage.client.schedule.getHandle('onceper-expect').trigger();
  const event = await until(
    'the check of the expected periods',
    () => Promise.resolve(loggedEvents(worker, 'period_overdue').find(({ period }) => period === last)),
    30_000,
  );
  return String(event['state']);
}

function afterDeploy(json: string): string {
  const { kind, paused, note } = JSON.parse(json) as Applied;
  return paused ? `${kind}, paused: ${note}` : `${kind}, not paused`;
}

async function backfillLine(stage: Stage, { last }: SampleMonths): Promise<string> {
  const stored = await activeRule(stage.db, 'settlement');
  const at = nominalTimeOf(parseRule(stored?.body, 'the drill'), last);
  return backfillCommand('settlement', at, at);
}
