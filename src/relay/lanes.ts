import { parseDestination } from '../kernel/destination.ts';
import { createLane, type Lane } from './lane.ts';

/** The lanes of a relay: one for all that the counterparty of money is asked, and one for each receiver of webhooks. */
export interface Lanes<T> {
  add(items: readonly T[]): void;
  /** How much of the counterparty's has not begun; what waits for a receiver holds no payout up. */
  waiting(): number;
  /** True when nothing of the counterparty's is in hand. */
  isQuiet(): boolean;
  isEmpty(): boolean;
  inHand(): number;
  /** Takes out what has not begun. */
  clear(): T[];
}

/** A receiver that is slow or down keeps its own lane busy and nobody else's. */
export function createLanes<T extends { readonly effect: { readonly destination: string } }>(
  concurrency: { readonly transfers: number; readonly notices: number },
  work: (item: T) => Promise<void>,
  onIdle: () => void,
): Lanes<T> {
  const transfers = createLane(concurrency.transfers, work, onIdle);
  const notices = new Map<string, Lane<T>>();
  const all = () => [transfers, ...notices.values()];

  function noticesTo(receiver: string): Lane<T> {
    const known = notices.get(receiver) ?? createLane(concurrency.notices, work, onIdle);
    notices.set(receiver, known);
    return known;
  }

  return {
    add(items) {
      const payouts: T[] = [];
      for (const item of items) {
        const destination = parseDestination(item.effect.destination);
        if (destination.kind === 'account') payouts.push(item);
        else noticesTo(destination.receiver).add([item]);
      }
      transfers.add(payouts);
    },
    waiting: () => transfers.waiting(),
    isQuiet: () => isIdle(transfers),
    isEmpty: () => all().every(isIdle),
    inHand: () => all().reduce((sum, lane) => sum + lane.waiting() + lane.inFlight(), 0),
    clear: () => all().flatMap((lane) => lane.clear()),
  };
}

function isIdle(lane: Pick<Lane<unknown>, 'waiting' | 'inFlight'>): boolean {
  return lane.waiting() + lane.inFlight() === 0;
}
