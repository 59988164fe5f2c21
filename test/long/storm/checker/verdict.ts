/** What was found to be broken, and what shows it. */
export interface Violation {
  readonly invariant: string;
  readonly witness: string;
}

/** Counts what was checked: an invariant that nothing was checked for has not held, it was not looked at. */
export class Verdict {
  readonly checks = new Map<string, number>();
  readonly violations: Violation[] = [];

  /** One check of an invariant; the witness is made only where it does not hold. */
  check(invariant: string, holds: boolean, witness: () => string): void {
    this.checks.set(invariant, (this.checks.get(invariant) ?? 0) + 1);
    if (!holds) this.violations.push({ invariant, witness: witness() });
  }

  /** A check that two values are the same. */
  same(invariant: string, what: string, expected: unknown, found: unknown): void {
    this.check(invariant, expected === found, () => `${what}: expected ${String(expected)}, found ${String(found)}`);
  }
}
