import { type Database, transaction } from '../store/database.ts';
import {
  type CleanedPage,
  type CleanPlace,
  cleanDeliveries,
  lockCleaning,
  permitCleaning,
} from '../store/outbox-clean.ts';

/** What a cleaner did; `busy` where another one was at work, `stopped` where its signal ended it. */
export interface Cleaned {
  readonly kind: 'done' | 'busy' | 'stopped';
  readonly deleted: number;
  readonly batches: number;
}

const CLEAN = { label: 'clean', statementTimeout: 10_000, lockTimeout: 1_000 };
const BATCH = 2_000;

/**
 * Deletes deliveries older than `olderMs` of effects that were finished as long ago, in batches of a transaction each, one
 * cleaner at a time. The effects stay, for good: by their numbers a duplicate is recognised. Interrupted at any moment, it
 * is begun again.
 */
export async function cleanOutbox(
  db: Database,
  ask: { readonly olderMs: number; readonly signal?: AbortSignal; readonly batch?: number },
): Promise<Cleaned> {
  let place: CleanPlace | null = null;
  let deleted = 0;
  for (let batches = 0; ; batches += 1) {
    if (ask.signal?.aborted === true) return { kind: 'stopped', deleted, batches };
    const page = await cleanOne(db, { after: place, olderMs: ask.olderMs, limit: ask.batch ?? BATCH });
    if (page === null) return { kind: 'busy', deleted, batches };
    deleted += page.deleted;
    place = page.next;
    if (place === null) return { kind: 'done', deleted, batches: batches + 1 };
  }
}

/** Null where another cleaner is at work. */
function cleanOne(db: Database, page: Parameters<typeof cleanDeliveries>[1]): Promise<CleanedPage | null> {
  return transaction(db, CLEAN, async (tx) => {
    if (!(await lockCleaning(tx))) return null;
    await permitCleaning(tx);
    return cleanDeliveries(tx, page);
  });
}
