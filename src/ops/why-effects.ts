import { type EffectState, UNFINISHED_EFFECTS } from '../kernel/transitions.ts';
import { pauseInWords } from './destinations.ts';
import type { KeyStory } from './show.ts';

/** What has become of the payouts of a key, a line a state, and what those that are not final wait for. */
export function effectLines(story: KeyStory): string[] {
  const { effects, action, pause } = story;
  const lines = linesOf(effects, MEANING, action?.doneAt ?? null);
  if (pause === null || !waitsForPause(story)) return lines;
  return [...lines, `${pauseInWords(pause)}: they wait under their numbers, and are paid when it goes on`];
}

/** True where the key has payouts that wait for a paused counterparty. */
export function waitsForPause({ effects, pause }: Pick<KeyStory, 'effects' | 'pause'>): boolean {
  return pause !== null && UNFINISHED_EFFECTS.some((state) => (effects[state] ?? 0) > 0);
}

/** What has become of what is told to others. */
export function noticeLines({ notices, action }: KeyStory): string[] {
  return linesOf(notices, NOTICE_MEANING, action?.doneAt ?? null);
}

type Meaning = Readonly<Record<EffectState, string>>;

function linesOf(counts: KeyStory['effects'], meaning: Meaning, doneAt: string | null): string[] {
  return (Object.entries(counts) as [EffectState, number][]).map(
    ([state, count]) =>
      `${count} ${state}: ${doneAt === null ? 'nothing is sent before the key is done' : meaning[state]}`,
  );
}

const MEANING: Meaning = {
  pending: 'a relay sends them',
  sending: 'a relay holds them',
  unknown: 'sent without an answer; they are looked up by number, and never re-sent before that',
  pending_external: 'the counterparty has them and has not finished',
  succeeded: 'paid',
  failed: 'refused by the counterparty; the amounts are on hold',
  returned: 'paid and returned; the amounts are on hold',
  needs_attention: 'a person must look: the relay will not touch them again',
  dead: 'never sent and given up; a person must look',
};

const NOTICE_MEANING: Meaning = {
  pending: 'a relay sends them, each after the one before it to the same receiver',
  sending: 'a relay holds them',
  unknown: 'sent without a good answer; they are sent again with the same id',
  pending_external: 'no notice is ever this',
  succeeded: 'acknowledged',
  failed: 'refused for good by the receiver (410)',
  returned: 'no notice is ever this',
  needs_attention: 'a person must look: the relay will not touch them again',
  dead: 'given up; look at the receiver, then npx onceper outbox retry',
};
