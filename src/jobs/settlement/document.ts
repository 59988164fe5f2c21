import { createHash } from 'node:crypto';
import type { Tx } from '../../kernel/sql.ts';

/** A document as it is stored; `lines` counts what its hash is of. */
interface StoredDocument {
  readonly id: string;
  readonly key: string;
  readonly period: string;
  readonly totals: unknown;
  readonly lines: number;
  readonly hash: string;
  readonly fence: bigint;
  readonly ruleVersion: number;
}

/** Derived from key and content, so that a document written again after a failover is the same one. */
export function documentId(key: string, hash: string): string {
  return `doc-${sha256(`${key}\n${hash}`).slice(0, 20)}`;
}

export async function insertDocument(tx: Tx, document: StoredDocument): Promise<void> {
  const { id, key, period, totals, lines, hash, fence, ruleVersion } = document;
  await tx.query(
    `insert into settlement.document (id, key, period, totals, lines, hash, fence, rule_version)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [id, key, period, JSON.stringify(totals), lines, hash, fence, ruleVersion],
  );
}

/** SHA-256 of a text's UTF-8 bytes, hex. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
