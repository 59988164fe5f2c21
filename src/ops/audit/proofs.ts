import type { Instant, Tx } from '../../kernel/sql.ts';
import { type ProofPlace, type ProvenDecision, proofsAfter, unprovenDecisions } from '../../store/decision-proofs.ts';
import type { Finding } from './finding.ts';

/** Says why a stored token does not prove that `actor` held it at an instant, or null where it does. */
export type CheckToken = (token: string, actor: string, at: Instant) => Promise<string | null>;

/** The decisions of people, by what bears them out. */
export interface Decisions {
  /** Their token's signature, person and time were checked, and hold. */
  readonly proven: number;
  /** A token stands beside them that is shown when its own time is over, or was not checked for want of the key. */
  readonly unchecked: number;
  /** By a login that nothing binds, or before proofs were kept: no token was asked for. */
  readonly byLogin: number;
}

const PAGE = 1_000;
const MOST = 100;

/**
 * Checks every decision against the token that is stored beside it: that there is one of its decider, and with the key that it was
 * signed for that person and held then. Pages through the proofs, in constant memory.
 */
export async function verifyDecisions(
  tx: Tx,
  check: CheckToken | null,
): Promise<{ readonly decisions: Decisions; readonly findings: readonly Finding[] }> {
  const findings: Finding[] = (await unprovenDecisions(tx, MOST)).map((found) => ({
    kind: 'decision_unproven',
    ...found,
  }));
  const counts = { proven: 0, unchecked: 0, byLogin: 0 };
  for (let place: ProofPlace | null = null; ; ) {
    const page: ProvenDecision[] = await proofsAfter(tx, place, PAGE);
    for (const { approval, verb, actor, token, loginAs, at } of page) {
      if (token === null && loginAs !== null) counts.byLogin += 1;
      else if (token === null || check === null) counts.unchecked += 1;
      else {
        const why = await check(token, actor, at);
        if (why === null) counts.proven += 1;
        else if (findings.length < MOST) findings.push({ kind: 'proof_untrusted', approval, verb, actor, why });
      }
    }
    place = page.at(-1) ?? null;
    if (place === null || page.length < PAGE) return { decisions: counts, findings };
  }
}
