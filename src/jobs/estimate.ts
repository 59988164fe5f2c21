import type { Tx } from '../kernel/sql.ts';
import type { Estimate, Job, JobContext } from './job.ts';
import { periodCalendar, type StoredBody, storedRule } from './rule.ts';

/** A job's context of a key under a stored rule. */
export function contextUnder(
  stored: StoredBody,
  about: { readonly key: string; readonly period: string; readonly overrides: Readonly<Record<string, string>> },
): JobContext {
  const rule = storedRule(stored);
  const { key, period, overrides } = about;
  return { key, period, overrides, ruleVersion: stored.version, rule, calendar: periodCalendar(rule) };
}

/** What the job expects of a period under a stored rule; null where it can't tell, or no rule is loaded. */
export async function estimateUnder(
  tx: Tx,
  job: Job,
  stored: StoredBody | null,
  about: Parameters<typeof contextUnder>[1],
): Promise<Estimate | null> {
  if (stored === null || job.estimate === undefined) return null;
  return job.estimate(tx, contextUnder(stored, about));
}
