import { askFor, reasonOf } from '../approval-request.ts';
import { type AddCommand, command } from '../command.ts';

/** `takeover KEY`: asks that a key be taken from a holder whose lease is live. */
export const addTakeover: AddCommand = (program, act) => {
  command(program, 'takeover <key>', {
    summary: 'ask that a key be taken, before its lease ends, from a worker that will never finish it',
    example: 'npx onceper takeover settlement:2026-09 --reason "the machine is gone"',
  })
    .requiredOption('--reason <reason>', 'why, for the record and for whoever approves')
    .action(
      act(async (session, key: string, options: { readonly reason: string }) => {
        const reason = reasonOf(options);
        return askFor(session, () => ({ kind: 'takeover', ask: { key }, reason }));
      }),
    );
};
