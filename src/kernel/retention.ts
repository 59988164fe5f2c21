/** How far back something may still ask for a key, in days. */
export interface Horizons {
  /** Ticks that Temporal may still deliver after an outage: the catch-up window of the job's schedule. */
  readonly catchUpDays: number;
  /** Closed workflows that may still be reset or asked again. */
  readonly namespaceDays: number;
  /** How late a run may come, and so how far a backfill reaches; null sets no limit, back to the first period. */
  readonly latenessDays: number | null;
  /** The last try of a payout that a relay makes by itself. */
  readonly retryDays: number;
  /** The last try of a message to a receiver that a relay makes by itself. */
  readonly messageDays: number;
  /** Webhooks of the counterparty, which it may still repeat. */
  readonly webhookDays: number;
}

const ASKERS: Readonly<Record<keyof Horizons, string>> = {
  catchUpDays: 'the schedule’s catch-up window',
  namespaceDays: 'the namespace’s retention of closed workflows',
  latenessDays: 'the rule’s lateness',
  retryDays: 'the latest retry of a payout',
  messageDays: 'the latest retry of a message to a receiver',
  webhookDays: 'webhooks that the counterparty repeats',
};

/**
 * Why keys are kept too short a time, or null. The ledger must remember a key longer than anybody can ask for it: a key that
 * was forgotten is free, and its period would be settled again. `keepDays` null keeps keys for good.
 */
export function retentionFault(keepDays: number | null, horizons: Horizons): string | null {
  if (keepDays === null) return null;
  const { latenessDays, ...days } = horizons;
  if (latenessDays === null) {
    return `keys are kept for ${keepDays} days, and the rule sets no lateness, so that a run may ask for any older one`;
  }
  const terms = Object.entries({ ...days, latenessDays }) as [keyof Horizons, number][];
  const [term, longest] = terms.reduce((most, one) => (one[1] > most[1] ? one : most));
  if (keepDays >= longest) return null;
  return `keys are kept for ${keepDays} days, and ${ASKERS[term]} may ask for one for ${longest}`;
}

/** The longest that tries under a budget and a back-off can last, milliseconds: both tries and time must be spent. */
export function longestTryingMs(
  { tries, timeMs, lookUps }: { readonly tries: number; readonly timeMs: number; readonly lookUps: number },
  capMs: number,
): number {
  return Math.max(timeMs + capMs, tries * capMs) + lookUps * capMs;
}
