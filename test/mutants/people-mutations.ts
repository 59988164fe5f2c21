import type { Mutation } from './mutations.ts';

const INTENTS = ['test/workflows/intents.test.ts'];
const ANCHORS = ['test/app/anchors.test.ts'];
const ATTACKS = ['test/store/attacks.test.ts'];
const PROOFS = ['test/ops/audit/proofs.test.ts'];

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
  {
    name: 'effect written outside its slice',
    edits: [
      {
        file: 'migrations/0032_written_where_it_belongs.sql',
        find: `if stray is not null then
    raise exception '%: effects are written by a slice`,
        replace: `if false then
    raise exception '%: effects are written by a slice`,
      },
    ],
    tests: ATTACKS,
  },
  {
    name: 'token of another person beside a decision',
    edits: [
      {
        file: 'migrations/0033_decision_proof.sql',
        find: `if onceper.actor_id('user:' || btrim(claims ->> 'sub')) <> new.actor then`,
        replace: 'if false then',
      },
    ],
    tests: ATTACKS,
  },
  {
    name: 'worker that writes to the audit as a person',
    edits: [
      {
        file: 'migrations/0034_who_writes_as_whom.sql',
        find: 'if not onceper.may_write_as(new.actor, new.verb, new.run) then',
        replace: 'if false then',
      },
    ],
    tests: ATTACKS,
  },
  {
    name: 'stored token of another key',
    edits: [
      {
        file: 'src/ops/audit/proofs.ts',
        find: 'if (why === null) counts.proven += 1;',
        replace: 'if (why !== actor) counts.proven += 1;',
      },
    ],
    tests: PROOFS,
  },
];
