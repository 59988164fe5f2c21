import { isStalled } from '../jobs/expectation.ts';
import { UNASKED_AFTER_MS } from '../kernel/admission.ts';
import { leaseTimes } from '../kernel/lease.ts';
import type { Instant } from '../kernel/sql.ts';
import type { Action } from '../store/actions.ts';
import { between, bothClocks, inWords, later } from './both-clocks.ts';
import { documentOf } from './document.ts';
import { type KeyStory, stateOf } from './show.ts';

/** Until when the holder has the key, and when the next attempt can have it at the latest. */
export interface Takeover {
  readonly leaseUntil: Instant;
  /** The lease's end, and 0.8 × lease for transactions in flight, which no holder outlives. */
  readonly atTheLatest: Instant;
}

/** The bound on a takeover while the key is admitted or running; null where nobody holds it. */
export function takeoverOf({ action, leaseMs }: Pick<KeyStory, 'action' | 'leaseMs'>): Takeover | null {
  if (action === null || !isHeld(action)) return null;
  const grace = action.state === 'running' ? leaseTimes(leaseMs).transactionTimeout : 0;
  return { leaseUntil: action.leaseUntil, atTheLatest: later(action.leaseUntil, grace) };
}

function isHeld(action: Action): boolean {
  return action.state === 'admitted' || action.state === 'running';
}

/** The first line: what is going on, in one sentence. */
export function headline(story: KeyStory): string {
  const { key, action, runs, now, zone, attempts } = story;
  if (action === null) {
    const waiting = runs.findLast((run) => run.decision === stateOf(story));
    return stateOf(story) === 'held'
      ? `${key} is held (${waiting?.code}): ${waiting?.reason}. Nothing happens until a person releases it.`
      : `${key} is deferred: ${waiting?.reason}. ${askedLast(waiting?.decidedAt ?? now, now)}`;
  }
  const last = attempts.at(-1);
  const lastEnd = last === undefined ? '' : `, the last with ${last.code ?? last.outcome ?? 'no end'}`;
  switch (action.state) {
    case 'admitted':
      return isStalled(action)
        ? `${key} is stalled: it was admitted, and no worker claimed it within its start window.`
        : `${key} is admitted, and waits for a worker to claim it.`;
    case 'running':
      return isStalled(action)
        ? `${key} is stalled: the lease of its last attempt has ended, and no other attempt was granted.`
        : `${key} is running: attempt ${last?.number ?? '?'} works on it under fence ${action.fence}.`;
    case 'failed':
      return `${key} is between two attempts${lastEnd}. The next follows while a worker runs.`;
    case 'exhausted':
      return `${key} is exhausted: its budget of attempts in a row without a finished slice is spent${lastEnd}. Nothing goes on by itself.`;
    case 'cancelled':
      return `${key} is cancelled. Nothing goes on by itself.`;
    case 'skipped':
      return `${key} was skipped for good: ${action.skippedReason ?? ''}`;
    case 'done':
    case 'compensating':
    case 'compensated':
      return `${key} is ${action.state}: its ${documentOf(action.result) === null ? 'result' : 'document'} was written ${bothClocks(action.doneAt ?? action.leaseUntil, zone)}.`;
  }
}

/** What the row of a deferred run tells. Whether Temporal still has its tick, no row can know. */
function askedLast(at: Instant, now: Instant): string {
  const [ago, bound] = [between(at, now), UNASKED_AFTER_MS].map(inWords);
  return `It was last asked for ${ago} ago; one that nobody asks for in ${bound} is asked again by a worker's check of expected periods.`;
}

/** Who holds the key, until when, and until when at the latest a takeover happens. */
export function holder(story: KeyStory): string[] {
  const { action, now, zone, leaseMs } = story;
  const takeover = takeoverOf(story);
  if (action === null || takeover === null) return [];
  const who =
    action.state === 'admitted'
      ? `run ${action.ownerRun} owns it, and no attempt has claimed it yet`
      : `run ${action.ownerRun} holds it under fence ${action.fence}, by execution ${action.ownerExec} in its pass ${action.ownerPass}`;
  if (!isStalled(action)) return [who, ...liveLines(action, takeover, story)];
  const ended = `its ${action.state === 'admitted' ? 'start window' : 'lease'} ended ${bothClocks(action.leaseUntil, zone)}, ${inWords(between(action.leaseUntil, now))} ago`;
  const left = between(now, takeover.atTheLatest);
  const free =
    left > 0
      ? `transactions in flight may delay a takeover by ${inWords(left)} more, until ${bothClocks(takeover.atTheLatest, zone)} (0.8 × the lease of ${inWords(leaseMs)})`
      : 'nothing of the old holder can be in flight any more: the next claim gets it at once';
  return [who, ended, free];
}

function liveLines(action: Action, takeover: Takeover, { now, zone, leaseMs }: KeyStory): string[] {
  const until = `until ${bothClocks(takeover.leaseUntil, zone)}, for ${inWords(between(now, takeover.leaseUntil))} more`;
  if (action.state === 'admitted') return [`its start window is open ${until}`];
  const { renewEvery, transactionTimeout } = leaseTimes(leaseMs);
  return [
    `its lease runs ${until}, and is renewed every ${inWords(renewEvery)} while slices are worked on`,
    `were its worker dead, the next attempt would have the key at the latest ${bothClocks(takeover.atTheLatest, zone)}, in ${inWords(between(now, takeover.atTheLatest))}: the rest of the lease, and ${inWords(transactionTimeout)} (0.8 × lease) for transactions in flight`,
  ];
}
