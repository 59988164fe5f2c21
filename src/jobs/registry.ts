import { OnceperError } from '../kernel/error.ts';
import type { Job } from './job.ts';

/** The jobs of this deployment, by id. */
export interface Registry {
  readonly ids: readonly string[];
  /** The job, or null when the id is unknown: an unknown job's run is refused, not an error. */
  find(id: string): Job | null;
  /** The job; throws OnceperError `unknown_job` naming the known ones. */
  get(id: string): Job;
}

/** Makes a registry; two jobs of one id are a mistake of the deployment and stop its start. */
export function createRegistry(jobs: readonly Job[]): Registry {
  const byId = new Map<string, Job>();
  for (const job of jobs) {
    if (byId.has(job.id)) {
      throw new OnceperError({
        code: 'job_registered_twice',
        message: `job ${job.id} is registered twice`,
        remedy: 'give each job an id of its own in src/app/services.ts',
        at: job.id,
      });
    }
    byId.set(job.id, job);
  }
  return {
    ids: [...byId.keys()],
    find: (id) => byId.get(id) ?? null,
    get(id) {
      const job = byId.get(id);
      if (job !== undefined) return job;
      throw new OnceperError({
        code: 'unknown_job',
        message: `no job is called ${id}`,
        remedy: `the known ones are: ${[...byId.keys()].join(', ')}`,
        at: id,
      });
    },
  };
}
