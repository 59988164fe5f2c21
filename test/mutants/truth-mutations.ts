import type { Mutation } from './mutations.ts';

/** Bugs in what is said: what an answer means, what is named, what is taken for known. */
export const TRUTH_MUTATIONS: readonly Mutation[] = [
  {
    name: 'a conflict in answer to commit leaves the commit unknown',
    edits: [
      {
        file: 'src/kernel/commit-answer.ts',
        find: `states: /^40/,\n    means: 'rolled_back',`,
        replace: `states: /^40/,\n    means: 'unknown',`,
      },
    ],
    tests: ['test/store/commit.test.ts'],
  },
  {
    name: 'conflicts spend the budget',
    edits: [
      {
        file: 'src/kernel/budget.ts',
        find: 'else if (!isFree(attempt) && !isConflict(attempt)) spent += 1;',
        replace: 'else if (!isFree(attempt)) spent += 1;',
      },
    ],
    tests: ['test/kernel/budget.test.ts'],
  },
  {
    name: 'a range of periods holds one that is not meant',
    edits: [{ file: 'src/ops/period-list.ts', find: 'place === expected)', replace: 'expected !== undefined)' }],
    tests: ['test/ops/period-list.test.ts'],
  },
  {
    name: 'rows of one id in one file become one without a word',
    edits: [
      {
        file: 'src/jobs/settlement/import/import-file.ts',
        find: 'if (allowRepeats !== true) of.refusals.addFound(repeated);',
        replace: 'if (allowRepeats === false) of.refusals.addFound(repeated);',
      },
    ],
    tests: ['test/jobs/settlement/import/repeats.test.ts'],
  },
  {
    name: 'sums beyond what the ledger holds are sealed',
    edits: [
      {
        file: 'src/jobs/settlement/sums-check.ts',
        find: 'if (rows.length === 0) return null;',
        replace: 'if (rows.length >= 0) return null;',
      },
    ],
    tests: ['test/jobs/settlement/sums.test.ts'],
  },
  {
    name: 'a numeric id is rounded',
    edits: [
      {
        file: 'src/gateway/transfer.ts',
        find: 'return parseJson(quoteNumericIds(body), shape);',
        replace: 'return parseJson(body, shape);',
      },
    ],
    tests: ['test/gateway/numeric-ids.test.ts', 'test/gateway/http.test.ts'],
  },
  {
    name: 'messages that may still be sent are no term of retention',
    edits: [
      {
        file: 'src/app/retention.ts',
        find: 'messageDays: Math.ceil(longestTryingMs(messages, notices.backOff.capMs) / DAY_MS),',
        replace: 'messageDays: Math.ceil(longestTryingMs({ ...messages, lookUps: 0 }, 0) / DAY_MS / DAY_MS),',
      },
    ],
    tests: ['test/app/retention.test.ts'],
    temporal: true,
  },
  {
    name: 'a start that waits for ever',
    edits: [
      {
        file: 'src/app/process.ts',
        find: 'delay(Math.max(0, until - Date.now()),',
        replace: 'delay(Math.max(1e9, until - Date.now()),',
      },
    ],
    tests: ['test/app/process.test.ts'],
    temporal: true,
  },
];
