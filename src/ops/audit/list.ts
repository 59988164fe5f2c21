import type { Tx } from '../../kernel/sql.ts';
import { type AuditFilter, filteredEntries, type StoredEntry } from '../../store/audit-read.ts';

/** An entry as it is shown; `next` of the list goes on before this number. */
interface ShownEntry extends Omit<StoredEntry, 'detail' | 'previous'> {
  readonly detail: unknown;
}

export interface AuditList {
  readonly entries: readonly ShownEntry[];
  readonly next: bigint | null;
}

/** The audit's entries that pass a filter, newest first, a page at a time. */
export async function listAudit(
  tx: Tx,
  ask: AuditFilter & { readonly before: bigint | null; readonly limit: number },
): Promise<AuditList> {
  const found = await filteredEntries(tx, ask, { before: ask.before, limit: ask.limit + 1 });
  const entries = found.slice(0, ask.limit).map(shown);
  return { entries, next: found.length > ask.limit ? (entries.at(-1)?.seq ?? null) : null };
}

/** A detail that a hand has made no JSON is shown as it stands: listing must not fail where verifying finds. */
function shown(entry: StoredEntry): ShownEntry {
  const { seq, at, actor, verb, job, key, run, subject, detail, hash } = entry;
  const rest = { seq, at, actor, verb, job, key, run, subject, hash };
  try {
    return { ...rest, detail: JSON.parse(detail) as unknown };
  } catch {
    return { ...rest, detail };
  }
}
