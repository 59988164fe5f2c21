import type { Edit, Mutation } from './mutations.ts';

const NOTICES = ['test/relay/notices.test.ts'];
const ORDER = ['test/relay/notice-order.test.ts'];

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

/** Bugs in what is told to receivers of webhooks. */
export const NOTICE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'notice taken before its turn',
    edits: [edit('src/store/outbox-take.ts', '                 and ${IS_ITS_TURN}\n', '')],
    tests: ORDER,
  },
  {
    name: 'notice that was put before a person lets the next go on',
    edits: [edit('src/store/outbox-conditions.ts', `in ('succeeded', 'failed', 'returned'))`, `<> 'pending')`)],
    tests: ORDER,
  },
  {
    name: 'notice repeated under a fresh number',
    edits: [
      edit(
        'src/gateway/receivers.ts',
        'async send(receiver, number, body, signal) {',
        'async send(receiver, given, body, signal) {\n      const number = `${given}:${Math.random()}`;',
      ),
    ],
    tests: NOTICES,
  },
  {
    name: 'money repeated without a look-up',
    edits: [edit('src/store/outbox-repeat.ts', ` and starts_with(destination, 'webhook:')`, '')],
    tests: NOTICES,
  },
  {
    name: 'one lane for money and receivers',
    edits: [
      edit(
        'src/relay/lanes.ts',
        `if (destination.kind === 'account') payouts.push(item);`,
        'if (item) payouts.push(item);',
      ),
    ],
    tests: NOTICES,
  },
];
