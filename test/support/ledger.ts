import { randomUUID } from 'node:crypto';
import { type ClaimOutput, claim, close, endAttempt } from '../../activities/attempt.ts';
import { type OpenOutput, openStart, type Start } from '../../activities/open.ts';
import type { ActivityServices } from '../../activities/services.ts';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import { leaseTimes } from '../../src/kernel/lease.ts';
import { anchorOf } from '../../src/ops/audit/anchors.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { performSlice, type SliceOutcome } from '../../src/store/slices.ts';

/** The services of a worker over one database, without Temporal. */
export function servicesFor(db: Database, jobs: readonly Job[]): ActivityServices {
  return {
    db,
    renewals: db,
    registry: createRegistry(jobs),
    release: 'test',
    log: () => undefined,
    askForLook: () => Promise.resolve(),
    anchor: (head) => anchorOf(head, null),
    statusOfWorkflow: () => Promise.resolve(null),
    scheduleState: () => Promise.resolve('missing'),
    topUpSchedule: () => Promise.resolve('none'),
    draining: new AbortController().signal,
  };
}

export function testPool(url: string, max = 20): Database {
  return openDatabase({ url, name: 'test', max });
}

/** Opens a run of the month before the nominal time; each call is another start unless `startId` says otherwise. */
export function openRunOf(services: ActivityServices, input: Partial<Start> = {}): Promise<OpenOutput> {
  return openStart(services, {
    startId: randomUUID(),
    job: 'tiny',
    scheduledAt: '2026-02-01T02:00:00Z',
    door: 'schedule',
    actor: 'test',
    overrides: {},
    ...input,
  });
}

export type Granted = Extract<ClaimOutput, { kind: 'granted' }>;

/** Claims and insists on a grant. */
export async function mustClaim(
  services: ActivityServices,
  pass: { run: string; execution?: string; pass?: number },
): Promise<Granted> {
  const claimed = await claim(services, { execution: 'execution-1', pass: 1, ...pass });
  if (claimed.kind !== 'granted') throw new Error(`the claim was answered ${JSON.stringify(claimed)}`);
  return claimed;
}

/** Performs one slice of a grant as the activity does, without its heartbeat. */
export async function performOne(
  services: ActivityServices,
  grant: { key: string; fence: string },
  slice: number,
  leaseMs = 30_000,
): Promise<SliceOutcome> {
  const job = services.registry.get(grant.key.split(':')[0] ?? '');
  const fence = BigInt(grant.fence);
  const context = { key: grant.key, fence } as Parameters<Job['perform']>[1];
  return performSlice(services.db, { key: grant.key, fence, times: leaseTimes(leaseMs) }, slice, (tx, range) =>
    job.perform(tx, context, range),
  );
}

export { claim, close, endAttempt };
