/** Something that an honest chain can't show, and the row that shows it. */
export type ChainFinding =
  /** The row is not what was hashed. */
  | { readonly kind: 'edited'; readonly row: bigint }
  /** The row agrees with its own hash, but the entry after it, or the head, follows another one. */
  | { readonly kind: 'rewritten'; readonly row: bigint }
  /** Rows are missing in the middle; `renumbered` where those behind were moved up to hide it. */
  | { readonly kind: 'deleted'; readonly row: bigint; readonly until: bigint; readonly renumbered: boolean }
  /** Rows that were never appended. */
  | { readonly kind: 'inserted'; readonly row: bigint; readonly until: bigint }
  | { readonly kind: 'swapped'; readonly row: bigint; readonly with: bigint }
  /** Rows are missing at the end. */
  | { readonly kind: 'cut'; readonly row: bigint; readonly until: bigint }
  /** An anchor remembers another hash of this row: it, or one before it back to `after`, was changed and all behind hashed anew. */
  | { readonly kind: 'chain_rewritten'; readonly row: bigint; readonly after: bigint }
  /** A line of the anchors is not signed by the key, or contradicts another. */
  | { readonly kind: 'anchor_untrusted'; readonly row: bigint; readonly why: string };

/** Something that an honest decision on a request can't show. */
type DecisionFinding =
  /** A request says that somebody decided it, and no proof of theirs stands beside it. */
  | { readonly kind: 'decision_unproven'; readonly approval: string; readonly verb: string; readonly actor: string }
  /** The token beside a decision is not one that its decider held then. */
  | {
      readonly kind: 'proof_untrusted';
      readonly approval: string;
      readonly verb: string;
      readonly actor: string;
      readonly why: string;
    };

export type Finding = ChainFinding | DecisionFinding;

/** A finding in one sentence. */
export function findingText(finding: Finding): string {
  switch (finding.kind) {
    case 'edited':
      return `row ${finding.row} was edited: it is not what its hash was made from`;
    case 'rewritten':
      return `row ${finding.row} was edited and hashed anew: what follows it was chained to another row`;
    case 'deleted':
      return finding.renumbered
        ? `${rows(finding)} deleted, and what followed was renumbered`
        : `${rows(finding)} deleted`;
    case 'inserted':
      return `${rows(finding)} inserted: no append made it`;
    case 'swapped':
      return `row ${finding.row} and row ${finding.with} were swapped`;
    case 'cut':
      return `the tail was cut: ${rows(finding)} there once`;
    case 'chain_rewritten':
      return `the chain was rewritten: row ${finding.row} is not the one that was anchored, so some row after ${finding.after} was changed`;
    case 'anchor_untrusted':
      return `the anchor of row ${finding.row} can't be trusted: ${finding.why}`;
    case 'decision_unproven':
      return `request ${finding.approval}: ${finding.actor} is said to ${finding.verb} it, and no token of theirs stands beside it`;
    case 'proof_untrusted':
      return `request ${finding.approval}: the token by which ${finding.actor} is said to ${finding.verb} it can't be trusted: ${finding.why}`;
  }
}

function rows({ row, until }: { readonly row: bigint; readonly until: bigint }): string {
  return row === until ? `row ${row} was` : `rows ${row} to ${until} were`;
}
