import { endAttempt } from './claim-steps.ts';
import { endOpenAttempt, holds, keyAt, type Model, type ModelKey, unfinished } from './ledger-model.ts';
import { CRASHED, type Steps } from './steps.ts';

/** A grant as its holder remembers it, for ever: whether it still holds is the ledger's word. */
export interface Held {
  readonly period: number;
  readonly fence: number;
}

export interface SliceCommand {
  readonly kind: 'slice';
  readonly grant: Held;
  readonly slice: number;
}

export interface RenewCommand {
  readonly kind: 'renew';
  readonly grant: Held;
}

export interface CloseCommand {
  readonly kind: 'close';
  readonly grant: Held;
}

export interface EndCommand {
  readonly kind: 'end';
  readonly grant: Held;
  readonly outcome: 'failed' | 'worker_lost' | 'shutdown' | 'lease_lost';
  readonly begun: number;
}

/** One slice, one transaction, by the holder alone and once. */
export function* sliceSteps(model: Model, { grant, slice }: SliceCommand): Steps {
  yield 'gate';
  const key = keyAt(model, grant.period);
  if (!holds(key, grant.fence)) return { kind: 'lease_lost' };
  if (key.slices[slice] !== null) return { kind: 'already_done' };
  if ((yield 'perform') === 'crash') return CRASHED;
  key.slices[slice] = grant.fence;
  return { kind: 'performed' };
}

/** A lease is extended only while it is live. */
export function* renewSteps(model: Model, { grant }: RenewCommand): Steps {
  yield 'step';
  return { kind: 'renewed', held: holds(keyAt(model, grant.period), grant.fence) };
}

/** The document and `done` in one transaction, by the holder, when no slice is left; afterwards its result for everybody. */
export function* closeSteps(model: Model, { grant }: CloseCommand): Steps {
  const key = keyAt(model, grant.period);
  yield 'step';
  if (isDone(key)) return { kind: 'done' };
  if (!holds(key, grant.fence)) return { kind: 'lease_lost' };
  yield 'step';
  const left = unfinished(key).length;
  if (left > 0) return { kind: 'slices_left', left };
  yield 'gate';
  if ((yield 'close') === 'crash') return CRASHED;
  if (holds(key, grant.fence) && unfinished(key).length === 0) {
    key.documentFence = grant.fence;
    endOpenAttempt(key, () => ({ outcome: 'done' }));
    Object.assign(key.action ?? {}, { state: 'done', live: false });
    return { kind: 'done' };
  }
  yield 'step';
  return { kind: isDone(key) ? 'done' : 'lease_lost' };
}

const isDone = (key: ModelKey) => key.action?.state === 'done';

/**
 * The holder gives its attempt up. Two transactions, as wherever a lease is ended: the lease first, so that no further slice
 * begins, then the attempt, which waits for the slices in flight.
 */
export function* endSteps(model: Model, { grant, outcome, begun }: EndCommand): Steps {
  yield 'step';
  const key = keyAt(model, grant.period);
  if (holds(key, grant.fence)) Object.assign(key.action ?? {}, { live: false });
  yield 'gate';
  const { action } = key;
  if (action === null || action.fence !== grant.fence || action.state !== 'running') return { kind: 'moved_on' };
  return endAttempt(model, key, { outcome, code: outcome === 'failed' ? 'boom' : null, begun });
}
