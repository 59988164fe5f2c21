import type { Job } from '../jobs/job.ts';
import { nominalTimeOf } from '../jobs/occasion.ts';
import type { Registry } from '../jobs/registry.ts';
import { type JobRule, parseRule, storedRule } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Tx } from '../kernel/sql.ts';
import { clockOf, type Database } from '../store/database.ts';
import { activeRule, loadFirstRule } from '../store/rules.ts';
import { unclosedPeriods } from './schedule-preview.ts';

/** A job's rule and the version it is stored as. */
export interface ActiveRule {
  readonly rule: JobRule;
  readonly version: number;
}

/** A rule file that has been checked to its last field, and its JSON as it will be stored. */
export interface CheckedRule {
  readonly rule: JobRule;
  readonly body: unknown;
}

/**
 * Checks the text of a rule file: its shape, the job's own part, its zone, its calendars, its first period. Nothing is
 * stored. Throws OnceperError `malformed_rule`, `unknown_job`, `unknown_zone`, `malformed_calendar`, `malformed_period`,
 * `no_such_local_time`.
 */
export function checkRule(registry: Registry, text: string, at: string): CheckedRule {
  const body = parseJson(text, at);
  const rule = parseRule(body, at);
  registry.get(rule.job).parseParameters(rule.parameters);
  nominalTimeOf(rule, rule.first);
  refuseLeavingOut(rule, registry.get(rule.job), at);
  return { rule, body };
}

/** A period that is left out would hold up every later one of a job that settles them in order. */
function refuseLeavingOut({ missedFirings }: JobRule, { id, needs }: Job, at: string): void {
  if (missedFirings === 'all' || needs !== 'previous') return;
  throw new OnceperError({
    code: 'malformed_rule',
    message: `missedFirings is ${missedFirings}, but each period of ${id} needs the one before it`,
    remedy: 'leave missedFirings out, or write "all"',
    at,
  });
}

/** What loading a rule did: stored as version 1, or found as it is. */
export interface LoadedRule {
  readonly job: string;
  readonly version: number;
  readonly kind: 'loaded' | 'unchanged';
  /** How many of the periods of the next two years no firing of its calendar closes, and the first of them; null for none. */
  readonly unclosed: { readonly count: number; readonly first: string } | null;
}

/**
 * Loads a checked rule as version 1 of its job. A job that has a rule keeps it: throws OnceperError `rule_differs` where the
 * file says something else, since runs may have been admitted under what is stored.
 */
export async function loadRule(
  db: Database,
  checked: CheckedRule,
  from: { readonly at: string; readonly actor: string },
): Promise<LoadedRule> {
  const { job } = checked.rule;
  const loaded = await loadFirstRule(db, { job, body: checked.body, loadedBy: from.actor });
  if (loaded.kind !== 'differs') {
    const [first, ...others] = unclosedPeriods(checked.rule, await clockOf(db));
    const unclosed = first === undefined ? null : { count: 1 + others.length, first: first.period };
    return { job, version: loaded.version, kind: loaded.kind, unclosed };
  }
  throw new OnceperError({
    code: 'rule_differs',
    message: `version ${loaded.version} of the rule of ${job} is active and says something else than this file`,
    remedy: 'a stored rule is never replaced by loading a file; use a database of its own for other rules',
    at: from.at,
  });
}

/** The active rule of a known job. Throws OnceperError `unknown_job`, or `no_rule` where none was loaded. */
export async function activeRuleOf(tx: Tx, registry: Registry, job: string): Promise<ActiveRule> {
  registry.get(job);
  const stored = await activeRule(tx, job);
  if (stored !== null) {
    return { rule: storedRule(stored), version: stored.version };
  }
  throw new OnceperError({
    code: 'no_rule',
    message: `no rule is loaded for ${job}`,
    remedy: `npx onceper migrate --rules rules/${job}.json`,
    at: job,
  });
}

function parseJson(text: string, at: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new OnceperError({
      code: 'malformed_rule',
      message: `it is not JSON: ${error instanceof Error ? error.message : String(error)}`,
      remedy: 'compare it with rules/settlement.json',
      at,
      cause: error,
    });
  }
}
