import type { Hold, HoldFilter } from '../jobs/holds.ts';
import type { Registry } from '../jobs/registry.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Database } from '../store/database.ts';
import { numbersWithCode } from '../store/effect-alarms.ts';

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

/** Which of what is on hold: of one key, with one code of the counterparty, of these subjects; null does not narrow. */
export interface HoldChoice {
  readonly job: string;
  readonly key: string | null;
  readonly code: string | null;
  readonly subjects: readonly string[] | null;
}

/** As many as one person can be asked to decide at once. */
const MOST = 10_000;

/**
 * The numbers of what is on hold and chosen, at least one. Throws OnceperError `nothing_on_hold` where there is none, and where a
 * subject that was named has nothing on hold: whoever names it means it.
 */
export async function chosenHolds(
  { db, registry }: { readonly db: Database; readonly registry: Registry },
  { job, key, code, subjects }: HoldChoice,
): Promise<string[]> {
  const { holds } = await listHolds({ db, registry }, { job, states: ['held'], key, after: null, limit: MOST });
  const missing = subjects?.find((subject) => !holds.some((hold) => hold.subject === subject));
  if (missing !== undefined) throw noneChosen(missing);
  const named = holds.filter(({ subject }) => subjects?.includes(subject) ?? true).map(({ number }) => number);
  const numbers = code === null ? named : await numbersWithCode(db, named, code);
  if (numbers.length === 0) throw noneChosen(code ?? key ?? job);
  return numbers;
}

function noneChosen(at: string): OnceperError {
  return new OnceperError({
    code: 'nothing_on_hold',
    message: `nothing that is on hold is of ${at}`,
    remedy: 'npx onceper hold list names what is on hold',
    at,
  });
}
