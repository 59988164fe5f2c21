import type { Job } from '../../src/jobs/job.ts';
import { OnceperError } from '../../src/kernel/error.ts';
import type { Tx } from '../../src/kernel/sql.ts';
import { createTinyJob } from '../support/tiny-job.ts';
import type { World } from './ledger-model.ts';

/** What a sequence does in the middle of the job's steps; each is called once and forgotten. */
export interface Interruptions {
  seal: (() => Promise<void>) | null;
  close: (() => Promise<void>) | null;
  perform: (() => Promise<void>) | null;
  refusesSeal: boolean;
}

/** The tiny job as one sequence's world has it: it may refuse to seal, and can be interrupted at every step. */
export function createModelJob(id: string, world: World, interruptions: Interruptions): Job {
  const take = async (at: 'seal' | 'close' | 'perform') => {
    const interruption = interruptions[at];
    interruptions[at] = null;
    await interruption?.();
  };
  const job = createTinyJob(world.slices, {
    id,
    needs: world.needsPrevious ? 'previous' : 'nothing',
    perform: () => take('perform'),
    close: () => take('close'),
  });
  return {
    ...job,
    inspect: (_, { overrides }) => Promise.resolve(inspect(world, overrides)),
    async seal(tx, context) {
      await take('seal');
      const { rowCount } = await tx.query(
        `insert into tiny.seal (key, fence) values ($1, $2) on conflict (key) do nothing`,
        [context.key, context.fence],
      );
      if (rowCount === 0 || !interruptions.refusesSeal) return;
      throw new OnceperError({ code: 'no_fee_rule', message: 'no fee rule for XYZ', remedy: 'add one' });
    },
  };
}

function inspect({ inspection }: World, overrides: Readonly<Record<string, string>>) {
  if (inspection === 'ready') return { kind: 'ready' } as const;
  if (inspection === 'empty' && overrides['empty'] === 'true') return { kind: 'ready' } as const;
  return { kind: 'held', code: inspection, reason: 'a person must look' } as const;
}

/** Nominal times of the periods 2020 and 2021: the calendar's own, and another that closes the same period. */
export const NOMINAL_TIMES = [
  ['2021-01-01T02:00:00Z', '2021-07-01T00:00:00Z'],
  ['2022-01-01T02:00:00Z', '2022-07-01T00:00:00Z'],
] as const;

export function periodName(period: number): string {
  return String(2020 + period);
}

/** Stores the job with its two rule versions, the first one active, in one statement. */
export async function storeModelJob(tx: Tx, id: string, world: World): Promise<void> {
  const rule = (budget: number) =>
    JSON.stringify({
      job: id,
      zone: 'UTC',
      period: 'year',
      first: periodName(0),
      calendar: { month: 1, dayOfMonth: 1, hour: 2, minute: 0 },
      leaseSeconds: 600,
      startWindowSeconds: 600,
      budget,
      latenessDays: world.late ? 1 : null,
      limits: { runsInFlight: world.runsInFlight },
      parameters: {},
    });
  await tx.query(
    `with job as (insert into onceper.job (job, active_rule) values ($1, 1))
     insert into onceper.rule (job, version, body, loaded_by) values ($1, 1, $2, 'model'), ($1, 2, $3, 'model')`,
    [id, ...world.budgets.map(rule)],
  );
}
