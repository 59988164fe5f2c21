import type { Command } from 'commander';
import { parseEffectNumber } from '../../kernel/effect-number.ts';
import { parseKey } from '../../kernel/key.ts';
import { HOLD_LIFE, type HoldState } from '../../kernel/transitions.ts';
import { listHolds } from '../../ops/holds.ts';
import { askingCommand } from '../approval-request.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { renderHolds } from '../hold-text.ts';
import { statesOf, wholeNumber } from '../options.ts';

/** `hold list|release`: money of payouts that failed or came back. */
export const addHold: AddCommand = (program, act) => {
  const hold = noun(program, 'hold', 'money of payouts that failed or came back, and its release to the next period');
  addList(hold, act);
  addRelease(hold, act);
};

interface ListOptions {
  readonly job: string;
  readonly state: readonly HoldState[];
  readonly key?: string;
  readonly after?: string;
  readonly limit: number;
}

function addList(hold: Command, act: Act): void {
  command(hold, 'list', {
    summary: 'what is on hold, and with --state released what was, by whom and to which period',
    example: 'npx onceper hold list --key settlement:2026-09',
  })
    .option('--job <job>', 'of this job', 'settlement')
    .option('--state <states>', 'held or released, with a comma between them', statesOf(HOLD_LIFE, 'money on hold'), [
      'held',
    ])
    .option('--key <key>', 'of this key only')
    .option('--after <number>', 'begin behind this effect number')
    .option('--limit <n>', 'at most so many', wholeNumber('--limit', 1, 10_000), 50)
    .action(
      act(async (session, options: ListOptions) => {
        const { job, state: states, key = null, after = null, limit } = options;
        if (key !== null) parseKey(key);
        if (after !== null) parseEffectNumber(after);
        const { registry } = session;
        const list = await session.withDatabase((db) =>
          listHolds({ db, registry }, { job, states, key, after, limit }),
        );
        session.answer(list, renderHolds(session, list));
        return EXIT.done;
      }),
    );
}

function addRelease(hold: Command, act: Act): void {
  askingCommand(hold, act, {
    syntax: 'release <number>',
    summary: 'ask that the money of a payout be released to the next open period, which pays it under its own number',
    example: 'npx onceper hold release settlement:2026-09:m-1001:GBP:payout --reason "account corrected"',
    kind: 'release_hold',
    ask: (number) => ({ number }),
  });
}
