import { NOTICE_MUTATIONS } from './notice-mutations.ts';
import { PEOPLE_MUTATIONS } from './people-mutations.ts';
import { TRUTH_MUTATIONS } from './truth-mutations.ts';

/** One deliberate bug: what is replaced in a copy of the checkout, and the fast tests that must then fail. */
export interface Mutation {
  readonly name: string;
  readonly edits: readonly Edit[];
  readonly tests: readonly string[];
  /** The tests need a Temporal; starting one takes seconds. */
  readonly temporal?: true;
}

/** `find` stands in the file exactly once, or the mutation has lost its place and must be written anew. */
export interface Edit {
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const MODEL = ['test/model/ledger.test.ts'];
const CLOCK = ['test/store/clock.test.ts'];
const CLAIM = ['test/store/claim.test.ts'];
const INTERLEAVED = ['test/store/interleaved.test.ts'];

const LIVE = `state = 'running' and lease_until > clock_timestamp()`;
const HOLDS_FENCE = `where key = $1 and fence = $2 and ${LIVE} for key share`;
const RENEWS = `where key = $1 and fence = $2 and ${LIVE}\`,\n    [grant.key, grant.fence, grant.times.lease]`;
const CLOSES = `where a.key = $1 and a.fence = $2 and a.state = 'running' and a.lease_until > clock_timestamp()`;

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'fence dropped from the slice',
    edits: [edit('src/store/slices.ts', HOLDS_FENCE, HOLDS_FENCE.replace('fence = $2', '$2::int8 > 0'))],
    tests: CLAIM,
  },
  {
    name: 'fence dropped from the close',
    edits: [edit('src/store/close.ts', CLOSES, CLOSES.replace('a.fence = $2', '$2::int8 > 0'))],
    tests: INTERLEAVED,
  },
  {
    name: 'now() for clock_timestamp() in the slice',
    edits: [edit('src/store/slices.ts', HOLDS_FENCE, HOLDS_FENCE.replace('clock_timestamp()', 'now()'))],
    tests: CLOCK,
  },
  {
    name: 'now() for clock_timestamp() in the renewal',
    edits: [edit('src/store/close.ts', RENEWS, RENEWS.replace('clock_timestamp()', 'now()'))],
    tests: CLOCK,
  },
  {
    name: 'now() for clock_timestamp() in the close',
    edits: [edit('src/store/close.ts', CLOSES, CLOSES.replace('clock_timestamp()', 'now()'))],
    tests: CLOCK,
  },
  {
    name: 'expiry judged by the client',
    edits: [
      edit(
        'src/store/slices.ts',
        HOLDS_FENCE,
        HOLDS_FENCE.replace('clock_timestamp()', `'\${new Date().toISOString()}'`),
      ),
    ],
    tests: MODEL,
  },
  {
    name: 'live lease not required to renew',
    edits: [edit('src/store/close.ts', RENEWS, RENEWS.replace(' and lease_until > clock_timestamp()', ''))],
    tests: MODEL,
  },
  {
    name: 'slot of a nominal time not unique',
    edits: [edit('migrations/0001_ledger.sql', 'create unique index run_slot_once', 'create index run_slot_once')],
    tests: MODEL,
  },
  {
    name: 'key need not derive from job and period',
    edits: [
      edit(
        'migrations/0001_ledger.sql',
        `constraint action_key_derives_from_period check (key = job || ':' || period || coalesce(':adj-' || adj, '')),`,
        '',
      ),
    ],
    tests: ['test/store/by-hand.test.ts'],
  },
  {
    name: 'nullable key column: a run without a time may own a key',
    edits: [
      edit(
        'migrations/0001_ledger.sql',
        `  constraint run_without_time_is_refused check (scheduled_at is not null or decision = 'refused'),\n`,
        '',
      ),
    ],
    tests: ['test/store/by-hand.test.ts'],
  },
  {
    name: 'key read, then inserted',
    edits: [
      edit(
        'src/store/actions.ts',
        `values ($1, $2, $3, 'admitted', $4, clock_timestamp() + $5 * interval '1 millisecond', $6, $7, $8, $9)
     on conflict (key) do nothing`,
        `select $1, $2, $3, 'admitted', $4, clock_timestamp() + $5::int4 * interval '1 millisecond', $6, $7::jsonb, $8::int4, $9
      where not exists (select from onceper.action where key = $1)`,
      ),
    ],
    tests: ['test/store/win.test.ts'],
  },
  {
    name: 'stored decision not given back',
    edits: [
      edit(
        'src/store/runs.ts',
        `  if (!isUndecided(stored)) return stored;
  return (await redecideRun`,
        `  return (await redecideRun`,
      ),
      edit('src/store/runs.ts', `where start_id = $1 and decision in ('deferred', 'held')`, `where start_id = $1`),
      edit(
        'src/store/open.ts',
        `  if (stored !== null && !isUndecided(stored)) return answer(db, stored);
  const waiver`,
        `  const waiver`,
      ),
    ],
    tests: MODEL,
  },
  {
    name: 'limits counted without the job lock',
    edits: [
      edit(
        'src/store/open.ts',
        `  await lockJob(tx, run.job);
  // Under the lock`,
        `  // Under the lock`,
      ),
    ],
    tests: ['test/store/open.test.ts'],
  },
  {
    name: 'superseded holder not fenced: its lease is not revoked',
    edits: [edit('src/store/claim.ts', '  await revoke(db, request);\n', '')],
    tests: CLAIM,
  },
  {
    name: 'zombie claim not fenced: passes are not compared',
    edits: [
      edit(
        'src/store/claim.ts',
        'and (owner_exec is distinct from $3 or owner_pass < $4)\n        for update',
        'and ($3::text is not null or $4::int4 is not null)\n        for update',
      ),
    ],
    tests: INTERLEAVED,
  },
  {
    name: 'takeover does not wait for slices in flight',
    edits: [
      edit(
        'src/store/claim.ts',
        'and (owner_exec is distinct from $3 or owner_pass < $4)\n        for update',
        'and (owner_exec is distinct from $3 or owner_pass < $4)\n        for no key update',
      ),
    ],
    tests: INTERLEAVED,
  },
  {
    name: 'attempt left open by the next grant',
    edits: [
      edit(
        'src/store/claim.ts',
        '  const first = !locked.sealed;\n  await endLeftOpen(tx, request.key, request.execution);\n',
        '  const first = !locked.sealed;\n',
      ),
    ],
    tests: CLAIM,
  },
  {
    name: 'lower pass that got in between is not superseded',
    edits: [
      edit(
        'src/store/claim.ts',
        `    if (action.ownerExec === request.execution && (action.ownerPass ?? 0) < request.pass) return OVERTAKEN;\n`,
        '',
      ),
    ],
    tests: INTERLEAVED,
  },
  {
    name: 'plan stored by who peeked first, not by who locked',
    edits: [edit('src/store/claim.ts', 'const first = !locked.sealed;', 'const first = peeked?.sealedAt === null;')],
    tests: INTERLEAVED,
  },
  {
    name: 'seal skipped',
    edits: [
      edit(
        'src/store/claim.ts',
        '  if (peeked !== null && peeked.sealedAt === null) await hooks.seal(tx, peeked.fence + 1n);\n',
        '',
      ),
    ],
    tests: CLAIM,
  },
  {
    name: 'rule version not pinned',
    edits: [
      edit(
        'activities/job-context.ts',
        'await ruleVersion(tx, action.job, action.ruleVersion)',
        `await ruleVersion(tx, action.job, (await tx.query<{ active: number }>('select active_rule as active from onceper.job where job = $1', [action.job])).rows[0]?.active ?? 0)`,
      ),
    ],
    tests: MODEL,
  },
  {
    name: 'slice performed though it is done',
    edits: [
      edit('src/store/slices.ts', 'where key = $1 and slice = $3 and done_at is null', 'where key = $1 and slice = $3'),
    ],
    tests: CLAIM,
  },
  {
    name: 'close without a look at what is left',
    edits: [
      edit('src/store/close.ts', `  if (left > 0) return { kind: 'slices_left', left };\n`, ''),
      edit(
        'src/store/close.ts',
        '\n        and not exists (select from onceper.slice s where s.key = a.key and s.done_at is null)',
        '',
      ),
    ],
    tests: MODEL,
  },
  {
    name: 'end does not wait for slices in flight',
    edits: [
      edit(
        'src/store/claim.ts',
        `where key = $1 and fence = $2 and state = 'running' for update`,
        `where key = $1 and fence = $2 and state = 'running' for no key update`,
      ),
    ],
    tests: INTERLEAVED,
  },
  {
    name: 'budget counts a lost worker',
    edits: [edit('src/kernel/budget.ts', `new Set(['worker_lost', 'shutdown',`, `new Set(['shutdown',`)],
    tests: CLAIM,
  },
  {
    name: 'skip overlooks a grant that came and went',
    edits: [
      edit(
        'src/store/stop.ts',
        `where key = $1 and fence = $3 and state in`,
        `where key = $1 and $3::int8 >= 0 and state in`,
      ),
    ],
    tests: INTERLEAVED,
  },
  {
    name: 'an old number sent without a look-up',
    edits: [edit('src/kernel/delivery.ts', ' && periodEndedAgeMs + inHandMs < resendWindowMs(terms)', '')],
    tests: ['test/relay/old-numbers.test.ts'],
  },
  {
    name: 'a close forgets when its period ended',
    edits: [edit('src/store/close.ts', 'period_ends = $5, ', 'period_ends = nullif($5::timestamptz, $5), ')],
    tests: ['test/store/close.test.ts'],
  },
  {
    name: 'a take overlooks that the counterparty is paused',
    edits: [edit('src/store/outbox-take.ts', '\n                 and not (${ACCOUNTS_PAUSED} and ${MOVES_MONEY})', '')],
    tests: ['test/relay/pause.test.ts'],
  },
  {
    name: 'an answer about us fails the payout',
    edits: [
      edit(
        'src/gateway/http.ts',
        `return { kind: isDefinite(status) ? 'barred' : 'unknown', code, status };`,
        `return { kind: isDefinite(status) ? 'refused' : 'unknown', code, status };`,
      ),
    ],
    tests: ['test/gateway/http.test.ts'],
  },
  ...NOTICE_MUTATIONS,
  ...PEOPLE_MUTATIONS,
  ...TRUTH_MUTATIONS,
];
