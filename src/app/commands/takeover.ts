import { askingCommand } from '../approval-request.ts';
import type { AddCommand } from '../command.ts';

/** `takeover KEY`: asks that a key be taken from a holder whose lease is live. */
export const addTakeover: AddCommand = (program, act) => {
  askingCommand(program, act, {
    syntax: 'takeover <key>',
    summary: 'ask that a key be taken, before its lease ends, from a worker that will never finish it',
    example: 'npx onceper takeover settlement:2026-09 --reason "the machine is gone"',
    kind: 'takeover',
    ask: (key) => ({ key }),
  });
};
