import type { Gateway, Transfer } from '../port.ts';

/**
 * How a counterparty can be told to treat the next tries of one number; words of the simulator's modes. `refused` is an answer
 * that is final for the payee, such as a closed account; `barred` is one about us, such as a lack of balance.
 */
export type Treatment =
  | 'drop_before'
  | 'drop_after'
  | 'cut'
  | 'in_flight'
  | 'error_before'
  | 'error_after'
  | 'busy'
  | 'refused'
  | 'barred';

/**
 * What the suite needs of a counterparty, and what a stand-in may lack: `memory` that it keeps what it was told, `clock` that
 * its transfers bear the time of this run, so that a listing by time shows them.
 */
export type Ability = 'memory' | 'clock' | Treatment;

/** A counterparty under test, written by whoever writes an adapter. Every case gets one of its own, or a shared one. */
export interface ConformanceHarness {
  /** The adapter under test; the harness opens and closes it. */
  readonly gateway: Gateway;
  /** The same adapter towards a port on which nobody listens. */
  readonly unreachable: Gateway;
  /** A transfer that the counterparty accepts, under a number that it has never seen. */
  readonly transfer: (changes?: Partial<Transfer>) => Transfer;
  /** Treats the first try of a number so, and its later tries well. Asked for the abilities that are declared only. */
  treat(number: string, treatment: Treatment): Promise<void>;
  /** The truth from the counterparty's own books: transfers made under a number. Asked with `memory` only. */
  made(number: string): Promise<number>;
  /** Requests for money that the counterparty has received under a number. Asked with a treatment only. */
  requests(number: string): Promise<number>;
  /** What no answer may repeat: the credentials. */
  readonly secret: string | null;
}

/** One sentence of the port's contract. `run` rejects with an AssertionError where the adapter breaks it. */
export interface ConformanceCase {
  readonly name: string;
  readonly needs: readonly Ability[];
  readonly run: (harness: ConformanceHarness) => Promise<void>;
}

/** The frozen body of a transfer, as settlements write it. */
export function bodyOf(transfer: Transfer): string {
  const { amount, currency, destination, reference } = transfer;
  return JSON.stringify({ amount, currency, destination, reference });
}
