import type { Mutation } from './mutations.ts';

const INTENTS = ['test/workflows/intents.test.ts'];
const ANCHORS = ['test/app/anchors.test.ts'];

/** Bugs in who is believed to have acted, and in what keeps the record of it. */
export const PEOPLE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'intent of another job lends its name',
    edits: [
      {
        file: 'src/store/intents.ts',
        find: 'where start_id = $1 and job = $2',
        replace: `where start_id = $1 and $2 <> ''`,
      },
    ],
    tests: INTENTS,
    temporal: true,
  },
  {
    name: 'any schedule is the job’s own',
    edits: [
      {
        file: 'activities/open.ts',
        find: `schedule === job ? actorId('schedule', job) : 'temporal'`,
        replace: `schedule === undefined ? 'temporal' : \`schedule:\${schedule}\``,
      },
    ],
    tests: INTENTS,
    temporal: true,
  },
  {
    name: 'anchor that falls with the audit',
    edits: [
      { file: 'activities/epoch.ts', find: 'if (before === null || fall === null)', replace: 'if (fall !== before)' },
    ],
    tests: ANCHORS,
    temporal: true,
  },
];
