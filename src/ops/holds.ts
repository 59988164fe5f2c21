import type { Hold, HoldFilter } from '../jobs/holds.ts';
import type { Registry } from '../jobs/registry.ts';
import type { Database } from '../store/database.ts';

/** Some of what is on hold, or was; `next` is the number to go on behind, null at the end. Amounts in minor units. */
export interface HoldList {
  readonly holds: readonly Hold[];
  readonly next: string | null;
}

/** Money on hold of a job, in the order of key, subject and currency; nothing for a job that keeps none. */
export async function listHolds(
  { db, registry }: { readonly db: Database; readonly registry: Registry },
  ask: HoldFilter & { readonly job: string },
): Promise<HoldList> {
  const { job, limit } = ask;
  const found = (await registry.get(job).holds?.list(db, { ...ask, limit: limit + 1 })) ?? [];
  const holds = found.slice(0, limit);
  return { holds, next: found.length > limit ? (holds.at(-1)?.number ?? null) : null };
}
