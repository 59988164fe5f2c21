import { askFor, reasonOf } from '../approval-request.ts';
import { type AddCommand, command } from '../command.ts';

/** `skip KEY`: asks that a period be skipped for good. */
export const addSkip: AddCommand = (program, act) => {
  command(program, 'skip <key>', {
    summary: 'ask that a period be skipped for good, with its reason: its rows are settled by the next one',
    example: 'npx onceper skip settlement:2026-09 --reason "settled by hand before the move"',
  })
    .requiredOption('--reason <reason>', 'why, for the record and for whoever approves')
    .action(
      act(async (session, key: string, options: { readonly reason: string }) => {
        const reason = reasonOf(options);
        return askFor(session, () => ({ kind: 'skip', ask: { key }, reason }));
      }),
    );
};
