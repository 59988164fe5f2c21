import { isDeepStrictEqual } from 'node:util';
import type { Model } from './ledger-model.ts';

/** What a command answered, as both the model and the product say it. */
export type Answer = Readonly<Record<string, unknown>>;

/**
 * Where a command may be interrupted. Between two of them it is atomic. `gate` is the moment before its first transaction,
 * `seal` and `close` are the job's own hooks, `perform` the middle of a slice, which nobody who waits for slices can see;
 * `job` needs the job's lock to go on.
 */
export type Place = 'step' | 'job' | 'gate' | 'seal' | 'close' | 'perform';

export type Steps = Generator<Place, Answer, 'crash' | undefined>;

export const CRASHED: Answer = { kind: 'crashed' };

/** Runs a command to its end; a crash happens at the first of the job's hooks that it comes to. */
export function finish(steps: Steps, crash = false): Answer {
  let next = steps.next();
  while (next.done !== true) {
    const hit = crash && (next.value === 'seal' || next.value === 'close' || next.value === 'perform');
    next = steps.next(hit ? 'crash' : undefined);
  }
  return next.value;
}

/** Runs a command up to a place; its answer where it never comes there. */
export function runTo(steps: Steps, place: Place): Answer | null {
  let next = steps.next();
  while (next.done !== true && next.value !== place) next = steps.next();
  return next.done === true ? next.value : null;
}

export interface Outcome {
  readonly model: Model;
  readonly answers: readonly Answer[];
}

/**
 * Every way in which commands that run at once may interleave, one after the other first. What the product did at once must
 * be one of them.
 */
export function* interleavings(model: Model, begin: readonly ((model: Model) => Steps)[]): Generator<Outcome> {
  const seen: Outcome[] = [];
  const pending: number[][] = [[]];
  for (let turns = pending.pop(); turns !== undefined; turns = pending.pop()) {
    const { outcome, mayGoOn } = replay(model, begin, turns);
    if (outcome !== null) {
      if (seen.some((other) => isDeepStrictEqual(other, outcome))) continue;
      seen.push(outcome);
      yield outcome;
    }
    const last = turns.at(-1);
    // A stack: what is pushed last is tried next, and going on with the same command comes first.
    const order = mayGoOn.toSorted((a, b) => Number(a === last) - Number(b === last) || b - a);
    for (const turn of order) pending.push([...turns, turn]);
  }
}

function replay(
  from: Model,
  begin: readonly ((model: Model) => Steps)[],
  turns: readonly number[],
): { outcome: Outcome | null; mayGoOn: number[] } {
  const model = structuredClone(from);
  const running = begin.map((start) => ({
    steps: start(model),
    place: 'step' as Place,
    answer: null as Answer | null,
  }));
  for (const turn of turns) {
    const process = running[turn];
    if (process === undefined) throw new Error(`there is no command ${turn}`);
    let next = process.steps.next();
    while (next.done !== true && next.value === 'perform') next = process.steps.next();
    if (next.done === true) process.answer = next.value;
    else process.place = next.value;
  }
  const answers = running.flatMap((process) => (process.answer === null ? [] : [process.answer]));
  if (answers.length === running.length) return { outcome: { model, answers }, mayGoOn: [] };
  const mayGoOn = running.flatMap((process, at) => {
    const waits = process.place === 'job' && model.jobLock !== null;
    return process.answer === null && !waits ? [at] : [];
  });
  return { outcome: null, mayGoOn };
}
