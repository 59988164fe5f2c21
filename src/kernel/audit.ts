import type { Instant } from './sql.ts';

/**
 * What is audited, one word each. Decisions on a run other than admitted and duplicate are audited under their own word; then
 * what the ledger does, what people do, and what keeps a rewound database from paying.
 */
export const AUDIT_VERBS = [
  'refused',
  'conflict',
  'in-progress',
  'held',
  'deferred',
  'grant',
  'seal',
  'close',
  'release',
  'cancel',
  'skip',
  'retry',
  'resolve',
  'pause',
  'resume',
  'load-rule',
  'adopt-zone',
  'apply-schedule',
  'one-off',
  'freeze',
  'thaw',
  'reconcile-rewind',
  'request',
  'edit',
  'approve',
  'reject',
  'expire',
  'execute',
  'refuse',
  'takeover',
  'adjust',
  'backfill-cancel',
  'break-glass',
  'import',
] as const;
export type AuditVerb = (typeof AUDIT_VERBS)[number];

/** JSON that an audit entry may hold. Fences and amounts are written as text: RFC 8785 knows doubles only. */
export type AuditValue =
  | string
  | number
  | boolean
  | null
  | readonly AuditValue[]
  | { readonly [name: string]: AuditValue | undefined };

/** One act, as whoever does it states it. `subject` is what it was done to where that is no key: an effect, an approval. */
export interface AuditEntry {
  /** The actor's id. */
  readonly actor: string;
  readonly verb: AuditVerb;
  readonly job: string | null;
  readonly key: string | null;
  readonly run: string | null;
  readonly subject?: string | null;
  /** Ids, codes, reasons and digests; no bodies, no personal data. A member that is undefined is left out. */
  readonly detail: Readonly<Record<string, AuditValue | undefined>>;
}

/** The end of the chain: the last entry's number, and the hash that every entry before it goes into. */
export interface AuditHead {
  readonly seq: bigint;
  readonly hash: string;
}

/** The head of the audit at an instant, remembered outside the database. The signature is base64; null is unsigned. */
export interface Anchor {
  readonly seq: string;
  readonly hash: string;
  readonly at: Instant;
  readonly signature: string | null;
  /** The first 16 hex digits of the SHA-256 of the public key, so that a rotated key can be told. */
  readonly signer: string | null;
}

/** What the first entry follows. */
export const GENESIS = '0'.repeat(64);
