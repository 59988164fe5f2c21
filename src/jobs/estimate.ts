import type { Tx } from '../kernel/sql.ts';
import type { Estimate, Job, JobContext } from './job.ts';
import { parseRule, periodCalendar } from './rule.ts';

/** A stored rule, as the ledger has it. */
interface Pinned {
  readonly version: number;
  readonly body: unknown;
}

/** A job's context of a key under a stored rule. */
export function contextUnder(
  job: string,
  stored: Pinned,
  about: { readonly key: string; readonly period: string; readonly overrides: Readonly<Record<string, string>> },
): JobContext {
  const rule = parseRule(stored.body, `${job} version ${stored.version}`);
  const { key, period, overrides } = about;
  return { key, period, overrides, ruleVersion: stored.version, rule, calendar: periodCalendar(rule) };
}

/** What the job expects of a period under a stored rule; null where it can't tell, or no rule is loaded. */
export async function estimateUnder(
  tx: Tx,
  job: Job,
  stored: Pinned | null,
  about: Parameters<typeof contextUnder>[2],
): Promise<Estimate | null> {
  if (stored === null || job.estimate === undefined) return null;
  return job.estimate(tx, contextUnder(job.id, stored, about));
}
