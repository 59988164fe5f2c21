import type { Command } from 'commander';
import { parseEffectNumber } from '../../kernel/effect-number.ts';
import { parseKey } from '../../kernel/key.ts';
import { HOLD_LIFE, type HoldState } from '../../kernel/transitions.ts';
import { chosenHolds, listHolds } from '../../ops/holds.ts';
import { askFor, REASON, reasonOf } from '../approval-request.ts';
import { type Act, type AddCommand, command, noun } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { usage } from '../fault.ts';
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

interface ReleaseOptions {
  readonly job: string;
  readonly key?: string;
  readonly code?: string;
  readonly subjects?: readonly string[];
  readonly reason: string;
}

function addRelease(hold: Command, act: Act): void {
  command(hold, 'release [numbers...]', {
    summary:
      'ask that money on hold be released to the next open period, which pays it under its own numbers: of the payouts named, or of those chosen; one request',
    example: [
      'npx onceper hold release settlement:2026-09:m-1001:GBP:payout --reason "account corrected"',
      'npx onceper hold release --key settlement:2026-09 --code account_closed --reason "new accounts are known"',
    ].join('\n  '),
  })
    .option('--job <job>', 'of this job', 'settlement')
    .option('--key <key>', 'all of this key')
    .option('--code <code>', 'all that the counterparty refused with this code')
    .option('--subjects <subjects>', 'all of these subjects, with commas between them', (text) => text.split(','))
    .requiredOption('--reason <reason>', REASON)
    .action(
      act(async (session, numbers: readonly string[], options: ReleaseOptions) => {
        const reason = reasonOf(options);
        const { job, key = null, code = null, subjects = null } = options;
        checkChoice(numbers, [key, code, subjects]);
        for (const number of numbers) parseEffectNumber(number);
        if (key !== null) parseKey(key);
        const { registry } = session;
        return askFor(session, async (db) => {
          const chosen =
            numbers.length > 0 ? numbers : await chosenHolds({ db, registry }, { job, key, code, subjects });
          const [only] = chosen;
          const ask = chosen.length === 1 && only !== undefined ? { number: only } : { numbers: [...chosen] };
          return { kind: 'release_hold', ask, reason };
        });
      }),
    );
}

/** Numbers say all; without any, something must choose, so that nobody asks for everything by an empty line. */
function checkChoice(numbers: readonly string[], choices: readonly unknown[]): void {
  const chooses = choices.some((choice) => choice !== null);
  if (numbers.length > 0 !== chooses) return;
  throw usage(
    chooses ? 'numbers and a choice exclude each other' : 'what is to be released is missing',
    'NUMBERS',
    'name payouts, or choose by --key, --code or --subjects',
  );
}
