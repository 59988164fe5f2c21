import type { StormOptions } from './run-storm.ts';

/** How big a storm is where nothing else is stated: the long one has every kind, the short one fits into `npm test`. */
export function sizeOf(seed: number, isShort: boolean): Omit<StormOptions, 'keep' | 'tell'> {
  // Every second seed has a counterparty that forgets, so that old numbers are looked up first.
  const forgets = seed % 2 === 1;
  return isShort
    ? {
        seed,
        isShort,
        faults: 28,
        seconds: 14,
        only: [],
        terms: { months: 2, merchants: 40, subjectsPerSlice: 8, forgets },
      }
    : {
        seed,
        isShort,
        faults: 300,
        seconds: 200,
        only: [],
        terms: { months: 6, merchants: 200, subjectsPerSlice: 8, forgets },
      };
}
