import type { KeyObject } from 'node:crypto';
import type { Anchor } from '../../kernel/audit.ts';
import type { Tx } from '../../kernel/sql.ts';
import { entriesAfter, entryAt, lastSeqBeside, type StoredEntry, seqOfHash } from '../../store/audit-read.ts';
import { isSignedBy } from './anchors.ts';
import { ChainJudge } from './chain-judge.ts';
import type { Finding } from './finding.ts';
import { type CheckToken, type Decisions, verifyDecisions } from './proofs.ts';

/** What verifying the audit showed: `findings` are the first of `found`, in the order of their rows. */
export interface Verified {
  readonly ok: boolean;
  readonly entries: bigint;
  readonly head: { readonly seq: bigint; readonly hash: string };
  readonly anchors: number;
  /** Whether the anchors' signatures were checked: without the key they are believed as they stand. */
  readonly signaturesChecked: boolean;
  readonly decisions: Decisions;
  readonly found: number;
  readonly findings: readonly Finding[];
}

const PAGE = 1_000;
const SHOWN = 100;

/**
 * Walks the whole chain in pages and compares it with itself, with its head, and with anchors from outside. Without anchors a
 * tail that was cut together with the head, and a chain that was hashed anew with it, look honest. Then compares every decision on a
 * request with the signed token that stands beside it. Appends go on meanwhile; an
 * entry appended after the walk began is not judged.
 */
export async function verifyAudit(
  tx: Tx,
  options: {
    readonly anchors: readonly Anchor[];
    readonly key: KeyObject | null;
    /** Checks the tokens that decisions were made with; null where there is no key for it. */
    readonly checkToken?: CheckToken | null;
    readonly page?: number;
  },
): Promise<Verified> {
  const { head, last } = await lastSeqBeside(tx);
  const judge = new ChainJudge({
    entryAt: (seq) => entryAt(tx, seq),
    seqOfHash: (hash) => seqOfHash(tx, hash),
  });
  const compared = new AnchorComparison(options.anchors, options.key);
  const beyond: Finding[] = [];
  let entries = 0n;
  for await (const entry of chain(tx, last, options.page ?? PAGE)) {
    entries += 1n;
    if (judge.trueNumber(entry) > head.seq) {
      if (beyond.length < SHOWN) beyond.push({ kind: 'inserted', row: entry.seq, until: entry.seq });
    } else if (await judge.judge(entry)) compared.see(judge.trueNumber(entry), entry.hash);
  }
  const decided = await verifyDecisions(tx, options.checkToken ?? null);
  const findings = [...judge.findings(head), ...beyond, ...compared.findings(head.seq), ...decided.findings];
  return {
    ok: findings.length === 0,
    entries,
    head,
    anchors: options.anchors.length,
    signaturesChecked: options.key !== null,
    decisions: decided.decisions,
    found: findings.length,
    findings: findings.slice(0, SHOWN),
  };
}

async function* chain(tx: Tx, until: bigint, page: number): AsyncGenerator<StoredEntry> {
  for (let after = 0n; ; ) {
    const entries = await entriesAfter(tx, after, page);
    for (const entry of entries) {
      if (entry.seq > until) return;
      yield entry;
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < page) return;
    after = last.seq;
  }
}

/** Compares rows with the anchors of their numbers, as the rows come by. */
class AnchorComparison {
  private readonly found: Finding[] = [];
  private readonly trusted: Anchor[];
  private at = 0;
  /** The last row that an anchor bears out; the first that one contradicts is the finding, since all behind follow from it. */
  private good = 0n;
  private isBroken = false;

  constructor(anchors: readonly Anchor[], key: KeyObject | null) {
    this.trusted = anchors.filter((anchor) => {
      if (key === null || isSignedBy(anchor, key)) return true;
      const why = anchor.signature === null ? 'it is not signed' : 'its signature is not of this key';
      this.found.push({ kind: 'anchor_untrusted', row: BigInt(anchor.seq), why });
      return false;
    });
    for (const [at, anchor] of this.trusted.entries()) {
      const other = this.trusted[at + 1];
      if (other === undefined || other.seq !== anchor.seq || other.hash === anchor.hash) continue;
      this.found.push({ kind: 'anchor_untrusted', row: BigInt(anchor.seq), why: 'two anchors of it differ' });
    }
  }

  see(number: bigint, hash: string): void {
    for (let anchor = this.trusted[this.at]; anchor !== undefined; anchor = this.trusted[this.at]) {
      const seq = BigInt(anchor.seq);
      if (seq > number) return;
      this.at += 1;
      if (seq < number || this.isBroken) continue;
      if (anchor.hash === hash) this.good = seq;
      else {
        this.isBroken = true;
        this.found.push({ kind: 'chain_rewritten', row: seq, after: this.good });
      }
    }
  }

  findings(last: bigint): readonly Finding[] {
    const furthest = this.trusted.at(-1);
    const until = furthest === undefined ? 0n : BigInt(furthest.seq);
    if (until > last) return [...this.found, { kind: 'cut', row: last + 1n, until }];
    return this.found;
  }
}
