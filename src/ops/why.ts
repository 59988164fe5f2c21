import { isCurrency } from '../kernel/currency.ts';
import { formatAmount } from '../kernel/money.ts';
import type { Tx } from '../kernel/sql.ts';
import { HAS_RESULT } from '../kernel/transitions.ts';
import type { Attempt } from '../store/attempts.ts';
import type { StoredRun } from '../store/runs.ts';
import { between, bothClocks, clocksNote, inWords } from './both-clocks.ts';
import { documentOf, resultInWords } from './document.ts';
import { type KeyStory, readKey, type ShownKey, shownKey } from './show.ts';
import { effectLines, noticeLines } from './why-effects.ts';
import { nextSteps, type Step } from './why-next.ts';
import { headline, holder, type Takeover, takeoverOf } from './why-now.ts';

/** A key's story told to somebody who was woken for it. */
export interface Explanation extends ShownKey {
  readonly headline: string;
  readonly clocks: string;
  readonly sections: readonly { readonly title: string; readonly lines: readonly string[] }[];
  /** When another attempt can have the key at the latest, or null where nobody holds it. */
  readonly takeover: Takeover | null;
  /** What is safe to do now, as commands that work as typed. */
  readonly next: readonly Step[];
}

/** Explains a key from the ledger alone. Throws OnceperError `malformed_key`, `unknown_key`. */
export async function explainKey(tx: Tx, key: string): Promise<Explanation> {
  const story = await readKey(tx, key);
  const sections = [
    { title: 'Who asked, and what was decided', lines: runLines(story) },
    { title: 'Attempts', lines: attemptLines(story) },
    { title: 'Who holds it', lines: holder(story) },
    { title: 'Work', lines: workLines(story) },
    { title: 'Effects', lines: effectLines(story) },
    { title: 'Notices', lines: noticeLines(story) },
  ].filter(({ lines }) => lines.length > 0);
  return {
    ...shownKey(story),
    headline: headline(story),
    clocks: clocksNote(story.zone),
    sections,
    takeover: takeoverOf(story),
    next: nextSteps(story),
  };
}

/** Duplicates can be many; the first runs and the owner's tell the story. */
const RUNS_SHOWN = 8;

function runLines(story: KeyStory): string[] {
  const { key, runs, action } = story;
  const shown = runs.filter((run, at) => at < RUNS_SHOWN || run.startId === action?.ownerRun);
  const lines = shown.flatMap((run) => linesOfRun(story, run));
  const left = runs.length - shown.length;
  return left === 0 ? lines : [...lines, `and ${counted(left, 'later run')}: npx onceper show ${key}`];
}

const DOORS: Readonly<Record<StoredRun['trigger'], string>> = {
  schedule: 'by the schedule',
  manual: 'by hand',
  backfill: 'by a backfill',
};

function linesOfRun({ zone, action }: KeyStory, run: StoredRun): string[] {
  const { startId, actor, trigger, openedAt, scheduledAt, decision, reason, repeatOf, releasedBy, releaseReason } = run;
  const asked = `${DOORS[trigger]} (${actor}), ${bothClocks(openedAt, zone)}`;
  if (decision === 'duplicate') return [`run ${startId}, ${asked}: a duplicate, answered with the stored result`];
  const repeat = repeatOf === null ? '' : `, a time that run ${repeatOf} had before`;
  const planned = scheduledAt === null ? [] : [`  planned for ${bothClocks(scheduledAt, zone)}${repeat}`];
  const released = releasedBy === null ? [] : [`  released by ${releasedBy}: "${releaseReason ?? ''}"`];
  const owner = startId === action?.ownerRun ? ', the owner' : '';
  return [
    `run ${startId}${owner}`,
    `  started ${asked}`,
    ...planned,
    `  ${decision.replaceAll('_', ' ')}: ${reason}`,
    ...released,
  ];
}

function attemptLines(story: KeyStory): string[] {
  const { attempts, action } = story;
  if (attempts.length === 0) return action === null ? [] : ['none was granted yet'];
  return attempts.flatMap((attempt) => linesOfAttempt(story, attempt));
}

function linesOfAttempt({ action, zone }: KeyStory, attempt: Attempt): string[] {
  const { number, run, fence, release, startedAt, endedAt, outcome, slicesFinished } = attempt;
  const of = run === action?.ownerRun ? '' : ` of run ${run}`;
  const name = `attempt ${number}${of} (fence ${fence}, release ${release})`;
  const began = `  began ${bothClocks(startedAt, zone)}`;
  if (outcome === null || endedAt === null) return [`${name} has not ended`, began];
  const finished = outcome === 'done' ? '' : `; it finished ${counted(slicesFinished, 'slice')}`;
  const ended = `ended ${bothClocks(endedAt, zone)}, after ${inWords(between(startedAt, endedAt))}${finished}`;
  return [`${name} ${OUTCOMES[outcome]}${because(attempt)}`, `${began}, ${ended}`];
}

function because({ outcome, code, detail }: Attempt): string {
  const parts = [code, detail].filter((part) => part !== null && part !== outcome);
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`;
}

const OUTCOMES: Readonly<Record<NonNullable<Attempt['outcome']>, string>> = {
  done: 'closed the key',
  failed: 'failed',
  worker_lost: 'lost its worker',
  shutdown: 'ended because its worker was shut down',
  lease_lost: 'lost its lease',
  lease_expired: 'was found without a live lease, and ended by the next',
  superseded: 'was superseded by the next pass of its own workflow',
  cancelled: 'was cancelled',
};

function workLines({ slices, action, zone }: KeyStory): string[] {
  if (action === null) return [];
  const lines: string[] = [];
  if (action.sealedAt !== null) lines.push(`the period was sealed ${bothClocks(action.sealedAt, zone)}`);
  if (slices.total > 0) lines.push(`${slices.done} of ${counted(slices.total, 'slice')} done`);
  const document = documentOf(action.result);
  if (document === null)
    return HAS_RESULT.has(action.state) ? [...lines, `result ${resultInWords(action.result)}`] : lines;
  lines.push(`document ${document.id}`);
  for (const [currency, totals] of Object.entries(document.totals)) {
    const sums = Object.entries(totals).map(([name, amount]) => `${name} ${money(amount, currency)}`);
    lines.push(`${currency}: ${sums.join(', ')}`);
  }
  return lines;
}

function money(amount: string, currency: string): string {
  return isCurrency(currency) && /^-?\d+$/.test(amount) ? formatAmount(BigInt(amount), currency) : amount;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
