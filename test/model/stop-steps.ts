import { type ActionState, endOpenAttempt, keyAt, type Model, type ModelAction, runOf } from './ledger-model.ts';
import type { Steps } from './steps.ts';

/** What is done to a key from outside: by a person, by the end of a lease, by a new rule. */
export type StopCommand =
  | { readonly kind: 'cancel'; readonly period: number }
  | { readonly kind: 'skip'; readonly period: number }
  | { readonly kind: 'expire'; readonly period: number }
  | { readonly kind: 'release'; readonly startId: string }
  | { readonly kind: 'activate' }
  | { readonly kind: 'refuse_seals'; readonly on: boolean };

export function stopSteps(model: Model, command: StopCommand): Steps {
  switch (command.kind) {
    case 'cancel':
      return cancelSteps(model, command.period);
    case 'skip':
      return skipSteps(model, command.period);
    case 'expire':
    case 'release':
    case 'activate':
    case 'refuse_seals':
      return atOnce(model, command);
  }
}

const CANCELLABLE: readonly ActionState[] = ['admitted', 'running', 'failed', 'exhausted'];
const SKIPPABLE: readonly ActionState[] = ['admitted', 'failed', 'exhausted', 'cancelled'];

function* cancelSteps(model: Model, period: number): Steps {
  const key = keyAt(model, period);
  const from = key.action?.state ?? 'none';
  if (key.action === null) return { kind: 'not_stoppable', state: from };
  const { action } = key;
  yield 'step';
  if (action.state === 'running') action.live = false;
  yield 'gate';
  if (CANCELLABLE.includes(action.state) && !(action.state === 'running' && action.live)) {
    endOpenAttempt(key, () => ({ outcome: 'cancelled' }));
    Object.assign(action, { state: 'cancelled', live: false });
    return { kind: 'stopped', from };
  }
  yield 'step';
  return action.state === 'running' ? { kind: 'busy' } : { kind: 'not_stoppable', state: action.state };
}

/** Final, and only for a key that has settled nothing. */
function* skipSteps(model: Model, period: number): Steps {
  const version = model.activeRule;
  yield 'gate';
  yield 'job';
  model.jobLock = `skip ${period}`;
  const key = keyAt(model, period);
  const before = key.action === null ? null : { state: key.action.state, fence: key.action.fence };
  yield 'step';
  const finished = key.slices.filter((fence) => fence !== null).length;
  if (finished > 0) {
    model.jobLock = null;
    return { kind: 'slices_finished', finished };
  }
  if (before !== null && !SKIPPABLE.includes(before.state)) {
    model.jobLock = null;
    return { kind: 'not_stoppable', state: before.state };
  }
  yield 'step';
  model.jobLock = null;
  if (before === null) {
    key.action = skippedAction(version);
    return { kind: 'stopped', from: 'none' };
  }
  const { action } = key;
  if (action === null || action.fence !== before.fence || !SKIPPABLE.includes(action.state)) {
    return { kind: 'error', code: 'skip_raced' };
  }
  Object.assign(action, { state: 'skipped', live: false });
  return { kind: 'stopped', from: before.state };
}

function skippedAction(ruleVersion: 1 | 2): ModelAction {
  const nobody = { owner: 'skipped by model', exec: null, pass: null, live: false, overrides: {} };
  return { ...nobody, state: 'skipped', fence: 0, ruleVersion, budgetFrom: 0, sealed: false };
}

function* atOnce(
  model: Model,
  command: Extract<StopCommand, { kind: 'expire' | 'release' | 'activate' | 'refuse_seals' }>,
): Steps {
  yield 'step';
  switch (command.kind) {
    case 'expire': {
      const { action } = keyAt(model, command.period);
      if (action?.state === 'running') action.live = false;
      return { kind: 'expired' };
    }
    case 'release': {
      const run = runOf(model, command.startId);
      const may = run !== null && run.decision === 'held';
      if (may) {
        run.released = true;
        run.waivers.push([run.code, keyAt(model, run.period).action?.fence ?? 0]);
      }
      return { kind: 'released', signed: may };
    }
    case 'activate':
      model.activeRule = 2;
      return { kind: 'activated' };
    case 'refuse_seals':
      model.refusesSeal = command.on;
      return { kind: 'told' };
  }
}
