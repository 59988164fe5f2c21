import { FAULTS } from './faults.ts';
import type { Ability, ConformanceCase } from './harness.ts';
import { LOOKING } from './looking.ts';
import { SENDING } from './sending.ts';

export type { Ability, ConformanceCase, ConformanceHarness, Treatment } from './harness.ts';

/**
 * What every adapter must hold, sentence by sentence (docs/adapters.md). It needs no test runner: run each case against a
 * harness, and report by name those that `casesFor` leaves out.
 */
export const CONFORMANCE: readonly ConformanceCase[] = [...SENDING, ...LOOKING, ...FAULTS];

/** The cases that a counterparty with these abilities can show, and the names of those that it can't. */
export function casesFor(abilities: readonly Ability[]): {
  readonly cases: readonly ConformanceCase[];
  readonly left: readonly string[];
} {
  const isShown = ({ needs }: ConformanceCase) => needs.every((ability) => abilities.includes(ability));
  return {
    cases: CONFORMANCE.filter(isShown),
    left: CONFORMANCE.filter((each) => !isShown(each)).map(({ name }) => name),
  };
}
