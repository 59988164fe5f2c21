import { setMaxListeners } from 'node:events';
import { parseDestination } from '../kernel/destination.ts';
import type { TakenEffect } from '../store/outbox-take.ts';
import { createBell } from './bell.ts';
import { createGiveBack } from './give-back.ts';
import { createLanes } from './lanes.ts';
import { perform } from './perform.ts';
import type { RelayPlan, RelayServices } from './plan.ts';
import { createRecorder, doesPause, reportLost } from './recorder.ts';

/** The effects in hand: performed with bounded concurrency, recorded as answers arrive. */
export interface Pump {
  /** Adds effects whose lease ends at `until` on the process's steady clock; a stopped pump gives them back. */
  offer(effects: readonly TakenEffect[], until: number): void;
  /** Resolves when so little waits that another take pays, and when the pump is stopped. */
  roomy(): Promise<void>;
  /** Resolves when nothing is in hand: performed, recorded, or given back. */
  empty(): Promise<void>;
  /** Begins nothing more: what has not begun is given back, once `taking` is over, which would take it again. */
  stop(taking: Promise<unknown>): void;
  inHand(): number;
  /** True when nothing that moves money is in hand; a slow receiver may still be. */
  isQuiet(): boolean;
}

interface InHand {
  readonly effect: TakenEffect;
  readonly until: number;
}

const NOT_BEGUN = { kind: 'not_begun' } as const;

/** Starts a pump; `signal` aborts the calls in flight, for the end of a drain's grace. */
export function createPump(services: RelayServices, plan: RelayPlan, signal: AbortSignal): Pump {
  // One listener for each call in flight; node takes more than ten for a leak and warns.
  setMaxListeners(0, signal);
  const bell = createBell();
  const recorder = createRecorder(services, plan, signal, () => bell.ring());
  const giveBack = createGiveBack(services, plan, bell);
  // Half a batch is left to send while the next is taken: with less, the calls would stand still during its COMMIT.
  const refillBelow = Math.max(plan.concurrency.transfers, plan.batch >> 1);
  const lanes = createLanes(plan.concurrency, performOne, () => bell.ring());
  let isStopped = false;
  let stopped: Promise<void> = Promise.resolve();

  // An answer about us holds for whatever was taken before it: that is given back unsent, but for the probe.
  let pausedAt = Number.NEGATIVE_INFINITY;
  const isPausedFor = ({ effect, until }: InHand) =>
    until - plan.leaseMs <= pausedAt && !effect.isProbe && parseDestination(effect.destination).kind === 'account';

  // While a pause is not written down, a take would not know of it.
  const hasRoom = () => lanes.waiting() < refillBelow && recorder.backlog() < 4 * plan.batch && !recorder.isPausing();

  async function performOne(inHand: InHand): Promise<void> {
    const { effect, until } = inHand;
    const performed = isPausedFor(inHand) ? NOT_BEGUN : await perform(services, plan, effect, until, signal);
    if (performed.kind === 'outcome') {
      if (doesPause(performed)) pausedAt = performance.now();
      recorder.add({ effect, outcome: performed.outcome });
    } else if (performed.kind === 'not_begun') giveBack.add([effect]);
    else if (performed.kind === 'lost') await reportLost(services, plan, [effect]);
    bell.ring();
  }

  return {
    offer(effects, until) {
      if (isStopped) return giveBack.add(effects);
      lanes.add(effects.map((effect) => ({ effect, until })));
    },
    roomy: () => bell.when(() => isStopped || hasRoom()),
    async empty() {
      await stopped;
      await bell.when(() => lanes.isEmpty() && giveBack.isDone());
      await recorder.settled();
    },
    stop(taking) {
      isStopped = true;
      const left = lanes.clear().map(({ effect }) => effect);
      stopped = taking.then(() => giveBack.add(left));
      bell.ring();
    },
    inHand: () => lanes.inHand() + recorder.backlog(),
    isQuiet: () => lanes.isQuiet() && recorder.backlog() === 0,
  };
}
