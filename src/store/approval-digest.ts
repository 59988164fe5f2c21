import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { ApprovalKind } from '../kernel/approval.ts';

/** Everything of a request that an approver is shown, and so approves. */
export interface Shown {
  readonly id: string;
  readonly kind: ApprovalKind;
  readonly ask: Readonly<Record<string, unknown>>;
  readonly reason: string;
  readonly plan: unknown;
}

/**
 * SHA-256 over the canonical JSON (RFC 8785) of what was shown, in hex. The id takes part, so that the digest of one request
 * approves no other. Names may be in any order; a digit that differs anywhere is another digest.
 */
export function digestOf({ id, kind, ask, reason, plan }: Shown): string {
  return createHash('sha256')
    .update(canonicalize({ id, kind, ask, reason, plan }) ?? '')
    .digest('hex');
}
