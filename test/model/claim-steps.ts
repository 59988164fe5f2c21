import {
  endOpenAttempt,
  isFree,
  keyAt,
  type Model,
  type ModelAction,
  type ModelKey,
  runOf,
  spentBudget,
  unfinished,
} from './ledger-model.ts';
import { type Answer, CRASHED, type Steps } from './steps.ts';

export interface ClaimCommand {
  readonly kind: 'claim';
  readonly run: string;
  readonly exec: string;
  readonly pass: number;
}

/**
 * A pass asks for its run's next attempt. It supersedes lower passes of its own execution, alive or not, waits for the lease
 * of any other, and asked twice gives its grant back. Ending a lease and granting the next are two transactions.
 */
export function* claimSteps(model: Model, command: ClaimCommand): Steps {
  const run = runOf(model, command.run);
  if (run === null) return { kind: 'refused', code: 'unknown_run' };
  if (run.decision !== 'admitted') return { kind: 'refused', code: 'not_admitted' };
  const key = keyAt(model, run.period);
  for (;;) {
    yield 'step';
    const known = yield* foreclosed(key, { ...mustHave(key) }, command);
    if (known !== null) return known;
    const action = mustHave(key);
    if (isBelow(action, command) && action.state === 'running') action.live = false;
    yield 'gate';
    let refused = false;
    if (!action.sealed) {
      if ((yield 'seal') === 'crash') return CRASHED;
      refused = model.refusesSeal && !action.sealed;
    } else {
      yield 'step';
    }
    if (!refused && isGrantable(action, command)) return grant(model, key, command);
    yield 'step';
    const seen = { ...action };
    const lost = yield* foreclosed(key, seen, command);
    if (lost !== null) return lost;
    if (seen.state === 'running' && seen.live) {
      // A lower pass of this execution was faster by a moment: it is superseded like any other.
      if (isBelow(seen, command)) continue;
      return { kind: 'busy' };
    }
    if (!refused) return { kind: 'busy' };
    yield 'step';
    if (isGrantable(action, command)) return recordRefusal(model, key, command);
  }
}

/** What needs no grant, as two reads: where the key stands, then what this pass was granted before. */
function* foreclosed(
  key: ModelKey,
  action: ModelAction,
  command: ClaimCommand,
): Generator<'step', Answer | null, 'crash' | undefined> {
  if (action.state === 'done') return { kind: 'done' };
  if (['exhausted', 'cancelled', 'skipped'].includes(action.state)) return { kind: 'refused', code: action.state };
  if (action.owner !== command.run) return { kind: 'refused', code: 'not_owner' };
  if (action.exec === command.exec && (action.pass ?? 0) > command.pass) {
    return { kind: 'superseded', pass: action.pass };
  }
  yield 'step';
  const { run, exec, pass } = command;
  const own = key.attempts.find((one) => one.run === run && one.exec === exec && one.pass === pass);
  if (own === undefined) return null;
  if (own.outcome !== null) return { kind: 'superseded', pass };
  const { fence, number } = own;
  yield 'step';
  return { kind: 'granted', fence, attempt: number, slices: unfinished(key) };
}

function isBelow(action: ModelAction, command: ClaimCommand): boolean {
  return action.owner === command.run && action.exec === command.exec && (action.pass ?? 0) < command.pass;
}

function isGrantable(action: ModelAction, command: ClaimCommand): boolean {
  if (action.owner !== command.run || !['admitted', 'running', 'failed'].includes(action.state)) return false;
  if (action.state === 'running' && action.live) return false;
  return action.exec !== command.exec || (action.pass ?? 0) < command.pass;
}

function grant(model: Model, key: ModelKey, command: ClaimCommand): Answer {
  const action = mustHave(key);
  endLeftOpen(key, command);
  if (!action.sealed) key.slices = Array.from({ length: model.world.slices }, () => null);
  action.sealed = true;
  const { fence, number } = begin(key, command);
  return { kind: 'granted', fence, attempt: number, slices: unfinished(key) };
}

/** A seal that the job refuses costs an attempt and leaves the period open. */
function recordRefusal(model: Model, key: ModelKey, command: ClaimCommand): Answer {
  endLeftOpen(key, command);
  begin(key, command);
  const next = endAttempt(model, key, { outcome: 'failed', code: 'no_fee_rule', begun: 0 });
  return { ...next, kind: 'failed', code: 'no_fee_rule', next: next.kind };
}

function endLeftOpen(key: ModelKey, command: ClaimCommand): void {
  endOpenAttempt(key, (open) => ({ outcome: open.exec === command.exec ? 'superseded' : 'lease_expired' }));
}

function begin(key: ModelKey, command: ClaimCommand): { fence: number; number: number } {
  const action = mustHave(key);
  const { run, exec, pass } = command;
  const fence = action.fence + 1;
  Object.assign(action, { state: 'running', fence, exec, pass, live: true });
  const number = key.attempts.filter((one) => one.run === run).length + 1;
  key.attempts.push({ run, number, exec, pass, fence, outcome: null, code: null, begun: 0, finished: 0 });
  return { fence, number };
}

/** Ends the newest attempt without a document: the owner goes on, or its budget is spent and it stops. */
export function endAttempt(
  model: Model,
  key: ModelKey,
  end: { outcome: string; code: string | null; begun: number },
): { readonly kind: 'again' | 'exhausted'; readonly spent: number; readonly waits: boolean } {
  const action = mustHave(key);
  endOpenAttempt(key, () => end);
  const spent = spentBudget(key, action.budgetFrom);
  const exhausted = spent >= (model.world.budgets[action.ruleVersion - 1] ?? 0);
  Object.assign(action, { state: exhausted ? 'exhausted' : 'failed', live: false });
  const last = key.attempts.at(-1);
  return { kind: exhausted ? 'exhausted' : 'again', spent, waits: !exhausted && last !== undefined && !isFree(last) };
}

function mustHave(key: ModelKey): ModelAction {
  if (key.action === null) throw new Error('an admitted run has an action');
  return key.action;
}
