import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { StoredEntry } from '../../store/audit-read.ts';

/**
 * The hash that an entry must have, by our own canonical JSON and not by the database's: whoever could change the function
 * there could otherwise make any entry true. Null where its detail is no JSON, which no append can have stored.
 */
export function entryHash(entry: Omit<StoredEntry, 'hash'>): string | null {
  const { seq, at, actor, verb, job, key, run, subject, previous } = entry;
  const detail = parsed(entry.detail);
  // An entry that is the same JSON in another spelling was written by a hand too.
  if (detail === undefined || canonicalize(detail) !== entry.detail) return null;
  const text = canonicalize({ seq: seq.toString(), at, actor, verb, job, key, run, subject, detail, previous });
  return createHash('sha256')
    .update(text ?? '')
    .digest('hex');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
