import type { AttemptOutcome } from './transitions.ts';

/** One ended attempt, as the budget sees it. */
export interface EndedAttempt {
  readonly outcome: AttemptOutcome;
  readonly code: string | null;
  readonly slicesBegun: number;
  readonly slicesFinished: number;
}

/** What happens to an action after an attempt that did not close it. */
export type AfterAttempt =
  | { readonly kind: 'again'; readonly afterMs: number; readonly spent: number }
  | { readonly kind: 'exhausted'; readonly spent: number };

/** Two transactions met and the server rolled one back: it says nothing about the work, which passes when it is tried again. */
const CONFLICTS: ReadonlySet<string> = new Set(['serialization', 'deadlock']);

const FREE: ReadonlySet<AttemptOutcome> = new Set(['worker_lost', 'shutdown', 'lease_expired', 'superseded']);

/**
 * Judges the budget after the newest attempt (last in the list). It counts attempts in a row that finished no slice: one
 * that finished any proves that the period can advance. Losing a worker, or a lease before the first slice began, says
 * nothing about the work, so these neither count nor wait; a killed fleet must not exhaust a healthy period. A conflict
 * with another transaction does not count either, but waits. Back-off doubles from 1 s to 30 s.
 */
export function judgeBudget(attempts: readonly EndedAttempt[], budget: number): AfterAttempt {
  let spent = 0;
  let conflicts = 0;
  for (const attempt of attempts) {
    conflicts = isConflict(attempt) ? conflicts + 1 : 0;
    if (attempt.slicesFinished > 0) spent = 0;
    else if (!isFree(attempt) && !isConflict(attempt)) spent += 1;
  }
  if (spent >= budget) return { kind: 'exhausted', spent };
  const last = attempts.at(-1);
  if (last === undefined || isFree(last)) return { kind: 'again', afterMs: 0, spent };
  const doublings = Math.max(0, (isConflict(last) ? conflicts : spent) - 1);
  return { kind: 'again', afterMs: Math.min(30_000, 1_000 * 2 ** doublings), spent };
}

function isConflict(attempt: EndedAttempt): boolean {
  return attempt.outcome === 'failed' && CONFLICTS.has(attempt.code ?? '');
}

function isFree(attempt: EndedAttempt): boolean {
  return FREE.has(attempt.outcome) || (attempt.outcome === 'lease_lost' && attempt.slicesBegun === 0);
}
