import { planRun, startRun as startPlanned } from '../ops/run.ts';
import type { SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';

/** Starts a run of the sample's last month, or of another, as `npx onceper run` does, without a process of its own; returns the run's id. */
export async function startRun(stage: Stage, sample: SampleMonths, period = sample.last): Promise<string> {
  const { db, client, actor, taskQueue } = stage;
  const when = { kind: 'period', period } as const;
  const planned = await planRun(db, sample.registry, { job: 'settlement', when, overrides: {} });
  await startPlanned(db, client, planned, { actor, taskQueue });
  return planned.id;
}
