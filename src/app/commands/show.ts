import { parseKey } from '../../kernel/key.ts';
import { HAS_RESULT } from '../../kernel/transitions.ts';
import { bothClocks, clocksNote } from '../../ops/both-clocks.ts';
import { resultInWords } from '../../ops/document.ts';
import { type KeyStory, readKey, type ShownKey, shownKey } from '../../ops/show.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

/** `show KEY`: all that the ledger knows of a key. */
export const addShow: AddCommand = (program, act) => {
  command(program, 'show <key>', {
    summary: 'what the ledger knows of a key: its state, runs, attempts, document and effects',
    example: 'npx onceper show settlement:2026-09',
  }).action(
    act(async (session, key: string) => {
      parseKey(key);
      const story = await session.withDatabase((db) => readKey(db, key));
      session.answer(shownKey(story), render(session, story));
      return EXIT.done;
    }),
  );
};

function render(session: Session, story: KeyStory): string {
  const shown = shownKey(story);
  const { zone } = story;
  const at = (instant: string | null) => (instant === null ? '' : bothClocks(instant, zone));
  const facts = [
    ['state', `${shown.state}${shown.stalled ? ' (stalled)' : ''}`],
    ['fence', shown.fence],
    ['owner', shown.owner ?? 'none'],
    ['lease until', isHeld(shown) ? at(shown.leaseUntil) : ''],
    ['rule version', shown.ruleVersion === null ? '' : String(shown.ruleVersion)],
    ['release', shown.release ?? ''],
    ['slices', `${shown.slices.done} of ${shown.slices.total} done`],
    written(shown),
    ['effects', countsOf(shown.effects) || 'none'],
    ['notices', countsOf(shown.notices)],
  ].filter(([, value]) => value !== '');
  const runs = shown.runs.map((run) => [run.run, at(run.scheduledAt), run.trigger, run.actor, run.decision]);
  const attempts = shown.attempts.map((attempt) => [
    `${attempt.number}`,
    attempt.fence,
    attempt.outcome ?? 'open',
    attempt.code ?? '',
    at(attempt.startedAt),
    at(attempt.endedAt),
    attempt.release,
  ]);
  const parts = [
    `${session.colours.bold(shown.key)}\n${session.colours.dim(clocksNote(zone))}`,
    table(
      session,
      ['', ''],
      facts.map((fact) => [...fact]),
    ).trim(),
    table(session, ['run', 'planned for', 'trigger', 'actor', 'decision'], runs),
  ];
  if (attempts.length > 0) {
    parts.push(table(session, ['attempt', 'fence', 'outcome', 'code', 'began', 'ended', 'release'], attempts));
  }
  return parts.join('\n\n');
}

function written({ document, result, state }: ShownKey): [string, string] {
  if (document === null && HAS_RESULT.has(state)) return ['result', resultInWords(result)];
  return ['document', document?.id ?? 'none'];
}

function countsOf(counts: ShownKey['effects']): string {
  return Object.entries(counts)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ');
}

function isHeld({ state }: ShownKey): boolean {
  return state === 'admitted' || state === 'running';
}
