import { type ExpectedPeriod, expectPeriods } from '../jobs/expectation.ts';
import type { Registry } from '../jobs/registry.ts';
import { type JobRule, periodCalendar } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import { comparePeriods, parsePeriod } from '../kernel/period.ts';
import type { Tx } from '../kernel/sql.ts';
import { actionsOfJob } from '../store/actions.ts';
import { clockOf } from '../store/database.ts';
import { waitingRunsOfJob } from '../store/waiting-runs.ts';
import { activeRuleOf } from './rule.ts';

export interface Expectation {
  readonly job: string;
  readonly rule: JobRule;
  readonly periods: readonly ExpectedPeriod[];
}

/**
 * Every period from the rule's first to the last that has ended by the database's clock, with what became of it: computed
 * from the calendar and the ledger alone, so that a run which Temporal dropped is seen. `from` and `to` narrow the list.
 * Throws OnceperError `unknown_job`, `no_rule`, `malformed_period`, `malformed_range`.
 */
export async function expectedPeriods(
  tx: Tx,
  registry: Registry,
  ask: { readonly job: string; readonly from?: string; readonly to?: string },
): Promise<Expectation> {
  const { job } = ask;
  const { rule } = await activeRuleOf(tx, registry, job);
  const isAsked = rangeOf(rule, ask);
  const [actions, waiting] = [await actionsOfJob(tx, job), await waitingRunsOfJob(tx, job)];
  const expected = expectPeriods(rule, await clockOf(tx), { actions, waiting });
  const periods = expected.filter(({ period }) => isAsked(period));
  return { job, rule, periods };
}

function rangeOf(rule: JobRule, ask: { from?: string; to?: string }): (period: string) => boolean {
  const calendar = periodCalendar(rule);
  const from = ask.from === undefined ? null : parsePeriod(ask.from, calendar);
  const to = ask.to === undefined ? null : parsePeriod(ask.to, calendar);
  if (from !== null && to !== null && comparePeriods(from, to, calendar) > 0) {
    throw new OnceperError({
      code: 'malformed_range',
      message: `${from} comes after ${to}`,
      remedy: 'give the earlier period as --from',
      at: `--from ${from} --to ${to}`,
    });
  }
  return (period) =>
    (from === null || comparePeriods(period, from, calendar) >= 0) &&
    (to === null || comparePeriods(period, to, calendar) <= 0);
}
