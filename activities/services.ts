import type { Registry } from '../src/jobs/registry.ts';
import type { Log } from '../src/observability/log.ts';
import type { Database } from '../src/store/database.ts';

/** What activities need, made once by the composition root. */
export interface ActivityServices {
  readonly db: Database;
  /** Renewals run on connections of their own: behind a slice's statement they would wait for the slice. */
  readonly renewals: Database;
  readonly registry: Registry;
  /** The deployed build, stored on actions and attempts. */
  readonly release: string;
  readonly log: Log;
  /** How Temporal describes the latest execution of a workflow ID, for example `COMPLETED`; null where it knows none. */
  readonly statusOfWorkflow: (workflowId: string) => Promise<string | null>;
  /** Asks the epoch workflow to look at the database soon; what fails is only told, since the next look is a minute away. */
  readonly askForLook: () => Promise<void>;
  /** Aborted when the worker begins to drain: no further slice is begun. */
  readonly draining: AbortSignal;
}
