import type { Job } from '../../jobs/job.ts';
import { OnceperError } from '../../kernel/error.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import { type Action, actionByKey } from '../../store/actions.ts';
import { activeRule } from '../../store/rules.ts';
import { refuseToSkip, type Stopped, skipUnderLock } from '../../store/stop.ts';
import { type Act, type ActParts, textOf } from './act.ts';

/** Skips a period for good, with its reason: what would be settled in it belongs to the next open one. */
export const skip: Act = {
  kinds: ['skip'],
  async plan(tx, parts, ask) {
    const { key, job, period, action } = await skippable(tx, parts, textOf(ask, 'key'));
    const plan = { key, period, state: action?.state ?? 'none', fence: String(action?.fence ?? 0n) };
    return { subject: key, job: job.id, key, plan };
  },
  async perform(tx, parts, { approval, actor }) {
    const { key, job, period } = await skippable(tx, parts, textOf(approval.ask, 'key'));
    const rule = await activeRule(tx, job.id);
    if (rule === null) throw noRule(job.id);
    const by = { actor: approval.decidedBy ?? actor, reason: approval.reason };
    const of = { key, job: job.id, period, ruleVersion: rule.version, release: parts.release, ...by };
    const stopped = await skipUnderLock(tx, of, async (same) => job.skip?.(same, { key, period }));
    if (stopped.kind !== 'stopped') throw nothingToSkip(key, stopped);
    return { kind: 'none' };
  },
};

async function skippable(
  tx: Tx,
  { registry }: ActParts,
  key: string,
): Promise<{ key: string; job: Job; period: string; action: Action | null }> {
  const { job: id, period, adj } = parseKey(key);
  const job = registry.get(id);
  if (adj !== null) throw nothingToSkip(key, { kind: 'not_stoppable', state: 'done' });
  const action = await actionByKey(tx, key);
  const refusal = await refuseToSkip(tx, key, action);
  if (refusal !== null) throw nothingToSkip(key, refusal);
  return { key, job, period, action };
}

function noRule(job: string): OnceperError {
  return new OnceperError({
    code: 'no_rule',
    message: `the job ${job} has no rule, so it has no periods to skip`,
    remedy: `npx onceper migrate --rules FILE loads one`,
    at: job,
  });
}

function nothingToSkip(key: string, stopped: Exclude<Stopped, { kind: 'stopped' }>): OnceperError {
  return new OnceperError({
    code: 'nothing_to_skip',
    message: `${key} is not skipped: ${whyNot(stopped)}`,
    remedy: `npx onceper why ${key}`,
    at: key,
  });
}

function whyNot(stopped: Exclude<Stopped, { kind: 'stopped' }>): string {
  switch (stopped.kind) {
    case 'slices_finished':
      return `${stopped.finished} of its slices are finished, and what they posted would be settled again`;
    case 'not_stoppable':
      return stopped.state === 'running' ? 'a worker holds it; cancel or take it over first' : `it is ${stopped.state}`;
    case 'busy':
      return 'it was granted at this moment';
  }
}
