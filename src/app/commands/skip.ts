import { askingCommand } from '../approval-request.ts';
import type { AddCommand } from '../command.ts';

/** `skip KEY`: asks that a period be skipped for good. */
export const addSkip: AddCommand = (program, act) => {
  askingCommand(program, act, {
    syntax: 'skip <key>',
    summary: 'ask that a period be skipped for good, with its reason: its rows are settled by the next one',
    example: 'npx onceper skip settlement:2026-09 --reason "settled by hand before the move"',
    kind: 'skip',
    ask: (key) => ({ key }),
  });
};
