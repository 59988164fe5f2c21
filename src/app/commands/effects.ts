import { parseKey } from '../../kernel/key.ts';
import { pauseInWords } from '../../ops/destinations.ts';
import { type EffectsPage, listEffects } from '../../ops/effects.ts';
import { type AddCommand, command } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../options.ts';
import { money } from '../outbox-text.ts';
import type { Session } from '../session.ts';
import { table } from '../table.ts';

interface EffectsOptions {
  readonly after?: string;
  readonly limit: number;
}

/** `effects KEY`: what the key sends, a page at a time. */
export const addEffects: AddCommand = (program, act) => {
  command(program, 'effects <key>', {
    summary: 'the effects of a key in the order of their numbers, and what became of each',
    example: 'npx onceper effects settlement:2026-09 --limit 100',
  })
    .option('--after <number>', 'begin behind this effect number')
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1, 10_000), 50)
    .action(
      act(async (session, key: string, options: EffectsOptions) => {
        parseKey(key);
        const { after = null, limit } = options;
        const page = await session.withDatabase((db) => listEffects(db, { key, after, limit }));
        session.answer(page, render(session, page, limit));
        return EXIT.done;
      }),
    );
};

function render(session: Session, { key, effects, next, pause }: EffectsPage, limit: number): string {
  if (effects.length === 0) return `${key} has no effects here`;
  const rows = effects.map(({ number, subject, currency, amount, state, attempts, counterpartyId }) => [
    number,
    subject,
    money(amount, currency),
    currency ?? '',
    state,
    String(attempts),
    counterpartyId ?? '',
  ]);
  const head = ['number', 'subject', 'amount', 'currency', 'state', 'attempts', 'counterparty id'];
  const more = next === null ? '' : `\n\nmore: npx onceper effects ${key} --limit ${limit} --after ${next}`;
  const paused = pause === null ? '' : `\n\n${pauseInWords(pause)}`;
  return table(session, head, rows, ['amount', 'attempts']) + paused + more;
}
