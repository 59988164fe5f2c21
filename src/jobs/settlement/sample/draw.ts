/**
 * A small generator of pseudo-random whole numbers (mulberry32) whose sequence depends on the seeds alone: a sample is the
 * same on every machine. Each month of each merchant has a sequence of its own, so that more merchants or months change none
 * of the others.
 */
export class Draw {
  #state: number;

  constructor(...seeds: readonly number[]) {
    this.#state = 0x9e3779b9;
    for (const seed of seeds) {
      this.#state = Math.imul(this.#state ^ seed, 0x85ebca6b) >>> 0;
      this.#next();
    }
  }

  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number {
    return least + (this.#next() % (most - least + 1));
  }

  /** True in `share` of 100 cases. */
  percent(share: number): boolean {
    return this.between(1, 100) <= share;
  }

  #next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
}
