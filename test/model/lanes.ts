import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { vi } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { installTinyJob } from '../support/tiny-job.ts';
import { anySequence, anyWorld } from './commands.ts';
import { type Met, runSequence } from './run-sequence.ts';

/** What to run: `sequences` in all, spread over lanes that each go their own way from a seed of their own. */
export interface Plan {
  readonly sequences: number;
  /** How many entries a sequence has at most, beside what it begins with. */
  readonly longest: number;
  readonly seed: number;
  /** fast-check's path to one failing sequence, which is then the only one; null runs them all. */
  readonly path: string | null;
  /** Whether a failing sequence is made as short as it can be. */
  readonly shrinks: boolean;
}

/**
 * What the environment asks for: MODEL_SEQUENCES, MODEL_SEED (a run is a new one unless it says which), MODEL_PATH, and
 * MODEL_SHRINK=off to stop at the first failure as it is.
 */
export function planOf(environment: NodeJS.ProcessEnv, usual: { sequences: number; longest: number }): Plan {
  return {
    sequences: Number(environment['MODEL_SEQUENCES'] ?? usual.sequences),
    longest: usual.longest,
    seed: Number(environment['MODEL_SEED'] ?? randomInt(2 ** 30)),
    path: environment['MODEL_PATH'] ?? null,
    shrinks: environment['MODEL_SHRINK'] !== 'off',
  };
}

/** As many sequences at once keep two cores busy; more only wait for each other. */
const LANES = 6;

/**
 * Runs the plan and prints what it was. The process's clock is decades behind meanwhile: whoever judged a lease by it would
 * take every one for live. `command` is what repeats a failing sequence, given its seed and path.
 */
export async function runPlan(plan: Plan, command: string): Promise<{ met: Met; sequences: number }> {
  vi.useFakeTimers({ toFake: ['Date'], now: new Date('1999-12-31T00:00:00Z') });
  const began = performance.now();
  try {
    return await runLanes(plan, command, (sequences) => {
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      process.stdout.write(`model: ${sequences} sequences in ${seconds} s, MODEL_SEED=${plan.seed}\n`);
    });
  } finally {
    vi.useRealTimers();
  }
}

/** How many sequences a long run prints a line after. */
const LINE_EVERY = 10_000;

/** Runs the plan in one database; rejects with the first difference and the line that repeats it. */
async function runLanes(
  plan: Plan,
  command: string,
  print: (sequences: number) => void,
): Promise<{ met: Met; sequences: number }> {
  const lanes = plan.path === null ? LANES : 1;
  const numRuns = plan.path === null ? Math.ceil(plan.sequences / lanes) : 1;
  const database = await createTestDatabase();
  const db = openDatabase({ url: database.url, name: 'model', max: lanes * 4 });
  const met: Met = new Map();
  let sequences = 0;
  // The first lane to fail goes on alone, so that its sequence can be made short; the others have nothing to add.
  let failing: number | null = null;
  const lane = async (at: number) => {
    const seed = plan.seed + at;
    const property = fc.asyncProperty(anyWorld, anySequence(plan.longest), async (world, entries) => {
      if (failing !== null && failing !== at) return;
      sequences += 1;
      if (sequences % LINE_EVERY === 0) print(sequences);
      try {
        await runSequence({ db, met }, `m${sequences}`, world, entries);
      } catch (error) {
        failing ??= at;
        throw error;
      }
    });
    const path = plan.path === null ? {} : { path: plan.path };
    const details = await fc.check(property, { seed, numRuns, endOnFailure: !plan.shrinks, ...path });
    if (!details.failed) return;
    const again = `MODEL_SEED=${seed} MODEL_PATH=${details.counterexamplePath} ${command}`;
    throw new Error(`repeat it with: ${again}\n${fc.defaultReportMessage(details)}`, { cause: details.errorInstance });
  };
  try {
    await installTinyJob(db);
    const ends = await Promise.allSettled(Array.from({ length: lanes }, (_, at) => lane(at)));
    print(sequences);
    const ended = failing === null ? undefined : ends[failing];
    if (ended?.status === 'rejected') throw ended.reason;
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    return { met, sequences };
  } finally {
    await db.close();
    await database.drop();
  }
}
