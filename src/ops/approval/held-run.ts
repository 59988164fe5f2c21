import { estimateUnder } from '../../jobs/estimate.ts';
import { storedRule } from '../../jobs/rule.ts';
import { type ApprovalKind, kindOfHold } from '../../kernel/approval.ts';
import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import { type Action, actionByKey, readmitAction } from '../../store/actions.ts';
import { type Expect, type HeldPlan, heldPlan, reasonToWait } from '../../store/held-plan.ts';
import { ruleVersion } from '../../store/rules.ts';
import { runByStartId, type StoredRun, signRelease } from '../../store/runs.ts';
import { giveWaiver } from '../../store/waivers.ts';
import { type Act, type ActParts, textOf } from './act.ts';

/**
 * Lets a run go on that waits for a person: a held one gets a waiver of what it is held for, as it stands under the fence of its
 * key, and is decided anew; the owner of an exhausted or cancelled key is admitted again at once.
 */
export const heldRun: Act<HeldPlan> = {
  kinds: ['late_run', 'empty_period', 'claim_again', 'held_run'],
  async plan(tx, parts, ask) {
    const { run, action } = await knownRun(tx, textOf(ask, 'run'));
    const plan = await heldPlan(tx, run, expectationOf(parts));
    if (plan === null) throw nothingToRelease(run, action);
    return { subject: plan.run, job: plan.job, key: plan.key, plan };
  },
  async perform(tx, _, { approval, actor, plan }) {
    const { run } = await knownRun(tx, plan.run);
    const { key, job, scheduledAt, overrides, heldFor } = plan;
    const fence = BigInt(plan.fence);
    if (run.decision === 'held') await giveWaiver(tx, { run: plan.run, code: heldFor, fence, approval: approval.id });
    else await claimAgain(tx, plan, fence);
    await signRelease(tx, { startId: plan.run, actor: approval.decidedBy ?? actor, reason: approval.reason });
    if (scheduledAt === null) return { kind: 'none' };
    return { kind: 'tick', run: { id: plan.run, job, key, scheduledAt, overrides } };
  },
};

/** Of which kind the request is that lets a run go on. Throws OnceperError `unknown_run`, `nothing_to_release`. */
export async function kindOfWaiting(tx: Tx, id: string): Promise<ApprovalKind> {
  const { run, action } = await knownRun(tx, id);
  const heldFor = reasonToWait(run, action);
  if (heldFor === null) throw nothingToRelease(run, action);
  return kindOfHold(heldFor);
}

/** What a job expects, asked of the registry. */
function expectationOf({ registry }: ActParts): Expect {
  return (tx, about, stored) => estimateUnder(tx, registry.get(about.job), stored, about);
}

/** A run and the action of its key. Throws OnceperError `unknown_run`. */
async function knownRun(tx: Tx, id: string): Promise<{ run: StoredRun; action: Action | null }> {
  const run = await runByStartId(tx, id);
  if (run !== null) return { run, action: run.key === null ? null : await actionByKey(tx, run.key) };
  throw new OnceperError({
    code: 'unknown_run',
    message: 'no run has this id',
    remedy: 'npx onceper show KEY lists the runs of a key with their ids',
    at: id,
  });
}

function nothingToRelease({ startId, key, decision }: StoredRun, action: Action | null): OnceperError {
  const state = action === null ? '' : `, and its key is ${action.state}`;
  return new OnceperError({
    code: 'nothing_to_release',
    message: `run ${startId} was decided ${decision}${state}: only a held run or the owner of an exhausted or cancelled key waits for a person`,
    remedy: key === null ? 'correct what it was refused for and start another' : `npx onceper why ${key}`,
    at: key ?? startId,
  });
}

async function claimAgain(tx: Tx, { key, job, run, ruleVersion: pinned }: HeldPlan, fence: bigint): Promise<void> {
  const stored = await ruleVersion(tx, job, pinned ?? 0);
  const startWindowMs = storedRule(stored).startWindowSeconds * 1_000;
  if (await readmitAction(tx, { key, ownerRun: run, fence, startWindowMs })) return;
  throw new OnceperError({
    code: 'world_moved',
    message: `${key} was claimed or stopped again at this moment`,
    remedy: `npx onceper why ${key}`,
    at: key,
  });
}
