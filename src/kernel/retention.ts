/** How far back something may still ask for a key, in days. */
export interface Horizons {
  /** Ticks that Temporal may still deliver after an outage. */
  readonly catchUpDays: number;
  /** Closed workflows that may still be reset or asked again. */
  readonly namespaceDays: number;
  /** How late a run may come; null sets no limit, so that a backfill may reach back to the first period. */
  readonly latenessDays: number | null;
}

/**
 * Why keys are kept too short a time, or null. The ledger must remember a key longer than anybody can ask for it: a key that
 * was forgotten is free, and its period would be settled again. `keepDays` null keeps keys for good.
 */
export function retentionFault(keepDays: number | null, horizons: Horizons): string | null {
  if (keepDays === null) return null;
  if (horizons.latenessDays === null) {
    return `keys are kept for ${keepDays} days, and the rule sets no lateness, so that a run may ask for any older one`;
  }
  const longest = Math.max(horizons.catchUpDays, horizons.namespaceDays, horizons.latenessDays);
  if (keepDays >= longest) return null;
  return `keys are kept for ${keepDays} days, and something may ask for one for ${longest}`;
}
