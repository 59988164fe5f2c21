import type { Tx } from '../kernel/sql.ts';
import { type DestinationStanding, readPause } from '../store/destinations.ts';
import { effectPage, type ShownEffect } from '../store/outbox-read.ts';
import { knownKey } from './known-key.ts';

/** One page of a key's effects; `next` is the `--after` of the next page, null on the last. */
export interface EffectsPage {
  readonly key: string;
  readonly effects: readonly ShownEffect[];
  readonly next: string | null;
  /** The pause of the counterparty, for which payouts that are not final wait; null while it is open. */
  readonly pause: DestinationStanding | null;
}

/** The effects of a key in the order of their numbers. Throws OnceperError `malformed_key`, `unknown_key`. */
export async function listEffects(
  tx: Tx,
  ask: { readonly key: string; readonly after: string | null; readonly limit: number },
): Promise<EffectsPage> {
  await knownKey(tx, ask.key);
  return {
    key: ask.key,
    ...(await effectPage(tx, ask.key, ask.after, ask.limit)),
    pause: await readPause(tx),
  };
}
