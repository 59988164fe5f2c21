import type { Edit } from '../mutants/mutations.ts';

/**
 * How a drill's guard is taken away: by these edits in a copy of the checkout, so that no switch for it is in the product. `differs`
 * is a fact that must then be seen otherwise than expected.
 */
export interface Guard {
  readonly drill: string;
  readonly off: readonly Edit[];
  readonly differs: string;
}

/** What "unique per request" is often read as: a number for each try. */
const NEW_NUMBER_EACH_TRY: Edit = {
  file: 'src/gateway/http.ts',
  find: 'async send(number, body, signal) {',
  replace:
    'async send(given, text, signal) { const number = `${given}:${Math.random()}`; const body = text.replace(given, number);',
};

/** The ledger takes any key for a period. */
const ANY_KEY: Edit = {
  file: 'migrations/0001_ledger.sql',
  find: "constraint action_key_derives_from_period check (key = job || ':' || period || coalesce(':adj-' || adj, ''))",
  replace: 'constraint action_key_derives_from_period check (true)',
};

export const GUARDS: readonly Guard[] = [
  {
    drill: 'effect-without-record',
    off: [{ file: 'src/store/slices.ts', find: 'await work(tx, range)', replace: 'await work(db, range)' }],
    differs: 'business rows left by them',
  },
  {
    drill: 'record-without-effect',
    off: [NEW_NUMBER_EACH_TRY],
    differs: 'numbers at the counterparty that nobody recorded',
  },
  {
    drill: 'key-outlived',
    off: [
      {
        file: 'src/kernel/delivery.ts',
        find: 'return terms.keyWindowMs - terms.timeoutMs;',
        replace: 'return terms.keyWindowMs + 86_400_000;',
      },
    ],
    differs: 'numbers sent again after the window',
  },
  {
    drill: 'backfill-new-key',
    off: [ANY_KEY],
    differs: 'a key that ends in :retry1',
  },
  {
    drill: 'zombie',
    off: [
      {
        file: 'src/store/slices.ts',
        find: "where key = $1 and fence = $2 and state = 'running' and lease_until > clock_timestamp() for key share",
        replace: 'where key = $1 and $2::int8 is not null for key share',
      },
    ],
    differs: 'slices finished under its fence after the takeover',
  },
  {
    drill: 'late-result',
    off: [
      {
        file: 'src/store/outbox-record.ts',
        find: 'where o.number = n.number and o.fence = n.fence and o.state = n.held',
        replace: 'where o.number = n.number',
      },
    ],
    differs: 'results that the woken relay recorded',
  },
  {
    drill: 'lost-commit-ack',
    off: [
      {
        file: 'src/store/slices.ts',
        find: 'select slice from onceper.slice where key = $1 and done_at is null order by slice',
        replace: 'select slice from onceper.slice where key = $1 order by slice',
      },
      {
        file: 'src/store/slices.ts',
        find: 'where key = $1 and slice = $3 and done_at is null\n     returning',
        replace: 'where key = $1 and slice = $3\n     returning',
      },
    ],
    differs: 'close: the key',
  },
  {
    drill: 'double-tick',
    off: [
      ANY_KEY,
      {
        file: 'activities/open.ts',
        find: 'const key = businessKey(job.id, due.period);',
        replace: 'const key = businessKey(job.id, due.period, String(Number(request.scheduledAt.slice(11, 13))));',
      },
    ],
    differs: 'keys in the ledger',
  },
  {
    drill: 'paused-over-month-end',
    off: [
      {
        file: 'src/ops/schedule.ts',
        find: '({ ...scheduleOptions(plan), state: found.state })',
        replace: '({ ...scheduleOptions(plan), state: { ...found.state, paused: false, note: undefined } })',
      },
    ],
    differs: 'runs opened for the instant',
  },
  {
    drill: 'zone-changed',
    off: [
      {
        file: 'src/jobs/settlement/period-row.ts',
        find: 'where p.period = b.period)',
        replace: 'where p.period = b.period and p.starts = b.starts)',
      },
      {
        file: 'src/jobs/settlement/period-row.ts',
        find: 'on conflict do nothing',
        replace: 'on conflict (period) do update set starts = excluded.starts, ends = excluded.ends',
      },
      {
        file: 'migrations/0002_settlement.sql',
        find: 'if (new.period, new.starts_on, new.ends_on, new.starts, new.ends)',
        replace: 'if false and (new.period, new.starts_on, new.ends_on, new.starts, new.ends)',
      },
    ],
    differs: 'periods whose bounds have moved',
  },
  {
    drill: 'lock-only',
    off: [NEW_NUMBER_EACH_TRY],
    differs: 'ours: merchants paid twice',
  },
  {
    drill: 'uuid-per-retry',
    off: [NEW_NUMBER_EACH_TRY],
    differs: 'ours: merchants paid twice',
  },
  {
    drill: 'unique-only',
    off: [
      {
        file: 'src/store/claim.ts',
        find: "and (state <> 'running' or lease_until <= clock_timestamp())",
        replace: "and state <> 'running'",
      },
    ],
    differs: 'ours: a claim after that',
  },
  {
    drill: 'receiver-down',
    off: [{ file: 'src/store/outbox-take.ts', find: 'and ${IS_ITS_TURN}', replace: '' }],
    differs: 'messages in the order acknowledged',
  },
  {
    drill: 'dropped-answers',
    off: [
      {
        file: 'src/kernel/delivery.ts',
        find: "case 'unknown':\n      return waits('unknown', later, answer.code);",
        replace: "case 'unknown':\n      return becomes('failed', answer.code);",
      },
    ],
    differs: 'of these, resolved by look-up',
  },
  {
    drill: 'temporal-erased',
    off: [
      {
        file: 'workflows/tick.ts',
        find: "if (opened.decision === 'admitted' || opened.decision === 'in_progress')",
        replace: "if (opened.decision === 'admitted')",
      },
      { file: 'activities/expected.ts', find: 'owners: owners.slice(0, MOST_OWNERS)', replace: 'owners: []' },
    ],
    differs: 'the half-way month was finished',
  },
  {
    drill: 'restored-late',
    off: [{ file: 'src/relay/relay.ts', find: '      plan.memory.see(taken.found);\n', replace: '' }],
    differs: 'calls to the counterparty before it was compared',
  },
  {
    drill: 'restored-forgotten',
    off: [
      {
        file: 'src/kernel/delivery.ts',
        find: 'return periodEndedAgeMs !== null && periodEndedAgeMs >= 0 && periodEndedAgeMs + inHandMs < resendWindowMs(terms);',
        replace: 'return periodEndedAgeMs !== -1 || inHandMs > resendWindowMs(terms);',
      },
    ],
    differs: 'numbers executed twice',
  },
  {
    drill: 'database-rewound',
    off: [
      {
        file: 'src/store/outbox-take.ts',
        find: 'any ($3::text[])\n          and not exists (select from onceper.epoch where frozen_at is not null)',
        replace: 'any ($3::text[])',
      },
    ],
    differs: 'calls to the counterparty while it was frozen',
  },
  {
    drill: 'kill-nine',
    off: [{ file: 'src/store/slices.ts', find: 'await work(tx, range)', replace: 'await work(db, range)' }],
    differs: 'the key',
  },
];
