/** A row that refuses the whole file: its line, counted from 1 and with the header, and why. */
export interface Refusal {
  readonly line: number;
  readonly reason: string;
}

/** A file of ten million wrong rows must not fill the memory; people mend a format after the first few. */
export const refusalsKept = 10_000;

/** Collects the refusals of a file: the first 10,000 in full, of the others the number. */
export class Refusals {
  readonly #kept: Refusal[] = [];
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(line: number, reason: string): void {
    this.#total += 1;
    if (this.#kept.length < refusalsKept) this.#kept.push({ line, reason });
  }

  /** Adds what ended the reading, which is kept however many there were before. */
  addLast(line: number, reason: string): void {
    this.#total += 1;
    this.#kept.push({ line, reason });
  }

  /** Adds refusals that a query found: those it returned, and how many there are of them in all. */
  addFound(found: { readonly refusals: readonly Refusal[]; readonly total: number }): void {
    for (const { line, reason } of found.refusals) this.add(line, reason);
    this.#total += found.total - found.refusals.length;
  }

  /** The kept refusals in the order of their lines. */
  inOrder(): readonly Refusal[] {
    return this.#kept.toSorted((a, b) => a.line - b.line);
  }
}
