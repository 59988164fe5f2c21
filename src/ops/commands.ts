import type { Instant } from '../kernel/sql.ts';

/*
 * Every command that is printed for people to type. The Temporal CLI always sends an overlap policy, Skip unless told, which
 * drops runs silently: hence AllowAll on each line. Both ends of a backfill are inclusive.
 */

/** Starts the run of one nominal time again, as the schedule would have. */
export function backfillCommand(job: string, from: Instant, to: Instant): string {
  return `npx temporal schedule backfill --schedule-id ${job} --start-time ${from} --end-time ${to} --overlap-policy AllowAll`;
}

/** Starts the run of this moment, which closes the last period that has ended. */
export function triggerCommand(job: string): string {
  return `npx temporal schedule trigger --schedule-id ${job} --overlap-policy AllowAll`;
}

export function runCommand(job: string, period: string, more = ''): string {
  return `npx onceper run ${job} --period ${period}${more}`;
}

/** Asks for the approval that lets a run go on. */
export function releaseCommand(run: string): string {
  return `npx onceper run --release ${run} --reason "..."`;
}

/** Lets a paused destination go on at once. */
export function resumeCommand(destination: string): string {
  return `npx onceper destination resume ${destination} --reason "..."`;
}

/** Approves exactly what was shown; for somebody else than whoever asked. */
export function approveCommand(id: string, digest: string): string {
  return `npx onceper approvals approve ${id} --digest ${digest}`;
}

/** The command that does what was approved, where the one that approved it was interrupted. */
export function executeCommand(id: string): string {
  return `npx onceper approvals execute ${id}`;
}
