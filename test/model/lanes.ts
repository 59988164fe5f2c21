import fc from 'fast-check';
import { openDatabase } from '../../src/store/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { installTinyJob } from '../support/tiny-job.ts';
import { anySequence, anyWorld } from './commands.ts';
import { type Met, runSequence } from './run-sequence.ts';

/** What to run: `sequences` in all, spread over `lanes` that each go their own way from a seed of their own. */
export interface Plan {
  readonly sequences: number;
  readonly lanes: number;
  readonly seed: number;
  /** fast-check's path to one failing sequence, which is then the only one; null runs them all. */
  readonly path: string | null;
}

/** The plan that the environment asks for: MODEL_SEQUENCES, MODEL_SEED, MODEL_PATH. A run is a new one unless it says which. */
export function planOf(environment: NodeJS.ProcessEnv, sequences: number, seed: number): Plan {
  const path = environment['MODEL_PATH'] ?? null;
  return {
    sequences: Number(environment['MODEL_SEQUENCES'] ?? sequences),
    lanes: path === null ? 6 : 1,
    seed: Number(environment['MODEL_SEED'] ?? seed),
    path,
  };
}

/** Runs the plan in one database; rejects with the first difference, shrunk, and the line that repeats it. */
export async function runLanes(plan: Plan, command: string): Promise<{ met: Met; sequences: number }> {
  const database = await createTestDatabase();
  const db = openDatabase({ url: database.url, name: 'model', max: plan.lanes * 4 });
  const met: Met = new Map();
  let sequences = 0;
  try {
    await installTinyJob(db);
    const numRuns = Math.ceil(plan.sequences / plan.lanes);
    const lane = async (at: number) => {
      const seed = plan.seed + at;
      const property = fc.asyncProperty(anyWorld, anySequence, (world, entries) => {
        sequences += 1;
        return runSequence({ db, met }, `m${sequences}`, world, entries);
      });
      const details = await fc.check(property, { seed, numRuns, ...(plan.path === null ? {} : { path: plan.path }) });
      if (!details.failed) return;
      const again = `MODEL_SEED=${seed} MODEL_PATH=${details.counterexamplePath} ${command}`;
      throw new Error(`repeat it with: ${again}\n${fc.defaultReportMessage(details)}`, {
        cause: details.errorInstance,
      });
    };
    const ends = await Promise.allSettled(Array.from({ length: plan.lanes }, (_, at) => lane(at)));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
    return { met, sequences };
  } finally {
    await db.close();
    await database.drop();
  }
}
