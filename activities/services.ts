import type { Audience } from '../src/jobs/job.ts';
import type { Registry } from '../src/jobs/registry.ts';
import type { Anchor, AuditHead } from '../src/kernel/audit.ts';
import type { Instant } from '../src/kernel/sql.ts';
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
  /** Whether Temporal fires a job's schedule now; `missing` where it has none. */
  readonly scheduleState: (job: string) => Promise<'active' | 'paused' | 'missing'>;
  /** Applies a job's schedule again where what its rule comes to has changed since it was applied. */
  readonly topUpSchedule: (job: string) => Promise<'none' | 'current' | 'topped_up'>;
  /** Asks the epoch workflow to look at the database soon; what fails is only told, since the next look is a minute away. */
  readonly askForLook: () => Promise<void>;
  /** Anchors the head of the audit outside the database: a signed line of the log. Returns it, for Temporal to remember too. */
  readonly anchor: (head: AuditHead & { readonly at: Instant }) => Anchor;
  /** Who is told of keys that close; nobody where it is absent. Names only: addresses and secrets are the relay's. */
  readonly audience?: Audience;
  /** Aborted when the worker begins to drain: no further slice is begun. */
  readonly draining: AbortSignal;
}
