import type { GrantedContext, Job } from '../src/jobs/job.ts';
import type { Registry } from '../src/jobs/registry.ts';
import { periodCalendar, storedRule } from '../src/jobs/rule.ts';
import { OnceperError } from '../src/kernel/error.ts';
import type { Tx } from '../src/kernel/sql.ts';
import { type Action, actionByKey } from '../src/store/actions.ts';
import { ruleVersion } from '../src/store/rules.ts';

/** An action's job and the context that its pinned rule gives; the fence is the caller's grant. */
export interface ActionContext {
  readonly job: Job;
  readonly action: Action;
  readonly contextUnder: (fence: bigint) => GrantedContext;
}

/** Reads an action and the rule it was admitted under; throws OnceperError `no_action` where the key has none. */
export async function contextOf(tx: Tx, registry: Registry, key: string): Promise<ActionContext> {
  const action = await actionByKey(tx, key);
  if (action === null) {
    throw new OnceperError({
      code: 'no_action',
      message: `no run was ever admitted for ${key}`,
      remedy: 'start it by its schedule or with npx onceper run',
      at: key,
    });
  }
  const rule = storedRule(await ruleVersion(tx, action.job, action.ruleVersion));
  return {
    job: registry.get(action.job),
    action,
    contextUnder: (fence) => ({
      key,
      period: action.period,
      ruleVersion: action.ruleVersion,
      rule,
      calendar: periodCalendar(rule),
      overrides: action.overrides,
      fence,
    }),
  };
}
