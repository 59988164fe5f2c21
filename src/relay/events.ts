import { codeOf } from '../kernel/error.ts';
import type { EffectState } from '../kernel/transitions.ts';

/** Which effect an event is about. */
interface About {
  readonly number: string;
  readonly job: string;
  readonly key: string;
  readonly fence: bigint;
}

export type RelayStep = 'take' | 'resend' | 'record' | 'reread' | 'release' | 'clear' | 'freeze';

/** What a relay tells while it works; ids, codes and counts only, never a body or an amount. */
export type RelayEvent =
  | { readonly kind: 'taken'; readonly count: number }
  | (About & {
      readonly kind: 'sent' | 'looked_up';
      readonly attempt: number;
      readonly answer: string;
      readonly code: string | null;
      readonly status: number | null;
      readonly ms: number;
    })
  | (About & { readonly kind: 'recorded'; readonly state: EffectState; readonly code: string | null })
  | (About & { readonly kind: 'lost'; readonly state: EffectState | null })
  | (About & { readonly kind: 'record_failed'; readonly code: string; readonly message: string })
  | { readonly kind: 'unrecorded'; readonly count: number; readonly code: string }
  | { readonly kind: 'released'; readonly count: number }
  | { readonly kind: 'cleared'; readonly key: string }
  | { readonly kind: 'fault'; readonly step: RelayStep; readonly code: string; readonly message: string }
  | { readonly kind: 'frozen'; readonly reason: string }
  | { readonly kind: 'paused'; readonly destination: string; readonly code: string; readonly status: number }
  | { readonly kind: 'resumed'; readonly destination: string }
  | { readonly kind: 'idle' }
  | { readonly kind: 'draining'; readonly inHand: number };

const COUNTED = [
  'taken',
  'sent',
  'looked_up',
  'pending',
  'unknown',
  'pending_external',
  'succeeded',
  'failed',
  'returned',
  'needs_attention',
  'dead',
  'lost',
  'record_failed',
  'unrecorded',
  'released',
  'cleared',
] as const;

/** What a relay did: effects taken, calls made, states recorded, and what it could not keep. */
export type RelayCounts = Record<(typeof COUNTED)[number], number>;

export function noCounts(): RelayCounts {
  return Object.fromEntries(COUNTED.map((name) => [name, 0])) as RelayCounts;
}

/** A fault of the database, as an event; the texts are the store's own, which repeat no row's values. */
export function faultEvent(step: RelayStep, error: unknown): RelayEvent {
  const message = error instanceof Error ? error.message : String(error);
  return { kind: 'fault', step, code: codeOf(error) ?? 'unexpected', message };
}

/** Adds what an event says to the counts. */
export function count(counts: RelayCounts, event: RelayEvent): void {
  switch (event.kind) {
    case 'taken':
    case 'released':
    case 'unrecorded':
      counts[event.kind] += event.count;
      break;
    case 'sent':
    case 'looked_up':
    case 'lost':
    case 'record_failed':
    case 'cleared':
      counts[event.kind] += 1;
      break;
    case 'recorded':
      if (event.state !== 'sending') counts[event.state] += 1;
      break;
    case 'fault':
    case 'frozen':
    case 'paused':
    case 'resumed':
    case 'idle':
    case 'draining':
      break;
  }
}
