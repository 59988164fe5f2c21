import { holdSlice } from '../../drills/lose-connection.ts';
import type { Stage } from '../../drills/stage.ts';
import { typed } from '../../drills/typed.ts';
import { until } from '../../drills/until.ts';
import type { Registry } from '../../jobs/registry.ts';
import { lastPlace } from '../../jobs/settlement/hold-line.ts';
import { instantPlus } from '../../kernel/instant.ts';
import { businessKey } from '../../kernel/key.ts';
import type { Instant } from '../../kernel/sql.ts';
import { backfillCommand, runCommand, triggerCommand } from '../../ops/commands.ts';
import { applyJobSchedule } from '../../ops/schedule.ts';
import { actionByKey } from '../../store/actions.ts';
import { attemptsOfKey } from '../../store/attempts.ts';
import { clockOf } from '../../store/database.ts';
import { runsOfKey } from '../../store/runs.ts';
import type { DemoMonths } from './months.ts';

/** Tells the person who watches, one sentence at a time. */
export type Tell = (sentence: string) => void;

/** Every month takes a second or two: a tick asks each second whether its predecessor is done. */
const MONTH_MS = 30_000;

/** Settles months by one `npx temporal schedule backfill`, as typed, and waits until each is done, oldest first. */
export async function backfillMonths(
  stage: Stage,
  months: readonly string[],
  range: DemoMonths['backfill'],
  tell: Tell,
): Promise<void> {
  const line = backfillCommand('settlement', range.from, range.to);
  tell(line);
  await typed(line, stage.environment);
  for (const [at, month] of months.entries()) {
    await untilDone(stage, businessKey('settlement', month));
    tell(`${at + 1} of ${months.length} months are done: ${month}`);
  }
}

/**
 * The schedule's own run of the last month: one more calendar instant a few seconds ahead, which two attempts of the run do
 * not survive, because the backend of one of their slices is terminated. Returns the instant.
 */
export async function ownRun(stage: Stage, registry: Registry, month: string, tell: Tell): Promise<Instant> {
  const { db } = stage;
  const key = businessKey('settlement', month);
  const place = await lastPlace(db, month);
  if (place === null) throw new Error(`the sample has no row in ${month}`);
  const held = await holdSlice(db, key, month, place);
  try {
    const oneOff = wholeSecond(instantPlus(await clockOf(db), { seconds: 4 }));
    await applyJobSchedule(db, stage.client, {
      ...scheduleOf(stage, registry),
      oneOff: { at: oneOff, reason: 'the demo', actor: stage.actor },
    });
    tell(`the schedule fires once more at ${oneOff}, and settles ${month}`);
    for (const attempt of [1, 2]) {
      const backend = await held.loseConnection();
      tell(`attempt ${attempt} stood in the middle of a slice: its database backend ${backend} was terminated`);
      await until(`the end of attempt ${attempt}`, () => hasEnded(stage, key, attempt), MONTH_MS);
    }
    return oneOff;
  } finally {
    await held.letGo();
  }
}

/** Waits for the third attempt. */
export async function thirdAttempt(stage: Stage, month: string): Promise<void> {
  await untilDone(stage, businessKey('settlement', month));
}

/** Takes the one-off instant out of the schedule again: a backfill knows only the calendar of its moment. */
export async function removeOneOff(stage: Stage, registry: Registry): Promise<void> {
  await applyJobSchedule(stage.db, stage.client, scheduleOf(stage, registry));
}

/**
 * Starts the settled month again by every door that closes it, and waits until each run is recorded. A trigger closes the
 * month before this moment, so it is no door to an older one.
 */
export async function startAgain(
  stage: Stage,
  again: { readonly month: string; readonly nominal: Instant; readonly byTrigger: boolean },
  tell: Tell,
): Promise<void> {
  const { month, nominal } = again;
  const key = businessKey('settlement', month);
  const backfill = backfillCommand('settlement', nominal, nominal);
  const lines = again.byTrigger ? [backfill, triggerCommand('settlement')] : [backfill];
  const before = (await runsOfKey(stage.db, key)).length;
  for (const line of lines) {
    tell(line);
    await typed(line, stage.environment);
  }
  const run = runCommand('settlement', month);
  tell(`${run}, twice at once`);
  await Promise.all([typed(run, stage.environment), typed(run, stage.environment)]);
  const wanted = before + lines.length + 2;
  await until('every start to be recorded', async () => (await runsOfKey(stage.db, key)).length >= wanted, MONTH_MS);
}

/** Waits until the relay has delivered everything that is deliverable. */
export async function untilDelivered(stage: Stage, tell: Tell): Promise<void> {
  const left = async () => {
    const { rows } = await stage.db.query<{ keys: number }>(
      `select count(*)::int4 as keys from onceper.action where delivering`,
    );
    return rows[0]?.keys ?? 0;
  };
  await until(
    'the relay to deliver every payout',
    async () => {
      const keys = await left();
      tell(`${keys} keys have payouts on their way`);
      return keys === 0;
    },
    180_000,
  );
}

/** The settlement job's schedule as its rule says. */
export function scheduleOf(stage: Stage, registry: Registry) {
  return { registry, job: 'settlement', taskQueue: stage.taskQueue, actor: stage.actor };
}

async function untilDone(stage: Stage, key: string): Promise<void> {
  await until(
    `${key} to be done`,
    async () => {
      const action = await actionByKey(stage.db, key);
      if (action?.state === 'exhausted') throw new Error(`${key} is exhausted: npx onceper why ${key}`);
      return action?.state === 'done';
    },
    MONTH_MS + 60_000,
  );
}

async function hasEnded(stage: Stage, key: string, number: number): Promise<boolean> {
  const attempts = await attemptsOfKey(stage.db, key);
  return attempts.some((attempt) => attempt.number === number && attempt.outcome !== null);
}

/** The next whole second: a calendar knows none smaller. */
function wholeSecond(instant: Instant): Instant {
  return instantPlus(`${instant.slice(0, 19)}Z`, { seconds: 1 });
}
