import { type AuditHead, GENESIS } from '../../kernel/audit.ts';
import type { StoredEntry } from '../../store/audit-read.ts';
import { entryHash } from './entry-hash.ts';
import type { ChainFinding } from './finding.ts';

/** What the judge asks of the table when a row is out of its place. */
export interface ChainLookup {
  entryAt(seq: bigint): Promise<StoredEntry | null>;
  seqOfHash(hash: string): Promise<bigint | null>;
}

/** So far an entry is looked for by its number before its predecessor is. */
const NEAR = 64n;
/** More edited rows than these are not compared with each other. */
const KEPT = 100;

interface Judged {
  readonly seq: bigint;
  readonly hash: string;
  /** Nothing was found about it, so what follows must be chained to it. */
  readonly isSound: boolean;
}

/**
 * Judges the entries of a chain one by one, in their order, and names what is wrong with which row. Holds one row and a bounded
 * number of findings, whatever the length of the chain.
 */
export class ChainJudge {
  private before: Judged = { seq: 0n, hash: GENESIS, isSound: true };
  /** How many numbers later an entry belongs than it stands: rows before it were deleted or inserted, and it was renumbered. */
  private shift = 0n;
  private readonly found: ChainFinding[] = [];
  private readonly edited: StoredEntry[] = [];
  private readonly swapped = new Set<bigint>();

  private readonly lookup: ChainLookup;

  constructor(lookup: ChainLookup) {
    this.lookup = lookup;
  }

  /** The number that a row has in the chain, as far as it is known by now. */
  trueNumber(entry: Pick<StoredEntry, 'seq'>): bigint {
    return entry.seq + this.shift;
  }

  /** The next row; false where something is wrong with it, so that nothing else need be said of it. */
  async judge(entry: StoredEntry): Promise<boolean> {
    const next = this.before.seq + 1n;
    const isGap = entry.seq > next;
    if (isGap) this.found.push({ kind: 'deleted', row: next, until: entry.seq - 1n, renumbered: false });
    const belongs = this.place(entry, entry.seq + this.shift);
    const isSound = belongs ? this.checkLink(entry, isGap) : await this.misplaced(entry);
    this.before = { seq: entry.seq, hash: entry.hash, isSound };
    return isSound;
  }

  /** What was found, once every row has been judged; pairs of edited rows that hold each other's contents are one finding. */
  findings(head: AuditHead): ChainFinding[] {
    const { hash, isSound } = this.before;
    const seq = this.trueNumber(this.before);
    if (seq < head.seq) this.found.push({ kind: 'cut', row: seq + 1n, until: head.seq });
    else if (seq === head.seq && hash !== head.hash && isSound && seq > 0n) {
      this.found.push({ kind: 'rewritten', row: seq });
    }
    return this.pairEdited();
  }

  private place(entry: StoredEntry, seq: bigint): boolean {
    return entryHash({ ...entry, seq }) === entry.hash;
  }

  private checkLink(entry: StoredEntry, isGap: boolean): boolean {
    const { seq, hash, isSound } = this.before;
    if (entry.previous === hash || isGap || !isSound) return true;
    this.found.push(seq === 0n ? { kind: 'rewritten', row: entry.seq } : { kind: 'rewritten', row: seq });
    return true;
  }

  private async misplaced(entry: StoredEntry): Promise<boolean> {
    if (this.swapped.has(entry.seq)) return false;
    const here = entry.seq + this.shift;
    const there = await this.trueSeq(entry, here);
    if (there === null) {
      this.found.push({ kind: 'edited', row: entry.seq });
      if (this.edited.length < KEPT) this.edited.push(entry);
      return false;
    }
    const partner = await this.lookup.entryAt(there - this.shift);
    if (partner !== null && this.place(partner, here)) {
      this.swapped.add(partner.seq);
      this.found.push({ kind: 'swapped', row: entry.seq, with: partner.seq });
      return false;
    }
    if (there > here) this.found.push({ kind: 'deleted', row: here, until: there - 1n, renumbered: true });
    else this.inserted(entry.seq - (here - there), entry.seq - 1n);
    this.shift = there - entry.seq;
    return true;
  }

  /** Rows before an entry that stands too late: what was said of them is that they were inserted. */
  private inserted(row: bigint, until: bigint): void {
    const isInside = (seq: bigint) => seq >= row && seq <= until;
    const others = this.found.filter((finding) => !(finding.kind === 'edited' && isInside(finding.row)));
    this.found.splice(0, this.found.length, ...others, { kind: 'inserted', row, until });
    const kept = this.edited.filter(({ seq }) => !isInside(seq));
    this.edited.splice(0, this.edited.length, ...kept);
  }

  private async trueSeq(entry: StoredEntry, here: bigint): Promise<bigint | null> {
    for (let distance = 1n; distance <= NEAR; distance += 1n) {
      if (this.place(entry, here + distance)) return here + distance;
      if (here > distance && this.place(entry, here - distance)) return here - distance;
    }
    if (this.found.length > KEPT) return null;
    const predecessor = await this.lookup.seqOfHash(entry.previous);
    if (predecessor === null) return null;
    const after = predecessor + 1n + this.shift;
    return after !== here && this.place(entry, after) ? after : null;
  }

  private pairEdited(): ChainFinding[] {
    let findings = this.found;
    for (const [at, one] of this.edited.entries()) {
      const other = this.edited.slice(at + 1).find((candidate) => holds(one, candidate) && holds(candidate, one));
      if (other === undefined) continue;
      const rest = findings.filter(
        (finding) => finding.kind !== 'edited' || (finding.row !== one.seq && finding.row !== other.seq),
      );
      findings = [...rest, { kind: 'swapped', row: one.seq, with: other.seq }];
    }
    return [...findings].sort((a, b) => (a.row < b.row ? -1 : a.row > b.row ? 1 : 0));
  }
}

/** True where one row holds what another's hash was made from; the instants may have been swapped with the rest or not. */
function holds(one: StoredEntry, other: StoredEntry): boolean {
  const { seq, previous, at } = other;
  return [one.at, at].some((instant) => entryHash({ ...one, seq, previous, at: instant }) === other.hash);
}
