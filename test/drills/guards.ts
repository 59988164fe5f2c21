import type { Edit } from './drill-process.ts';

/** How a drill's guard is taken away, in a copy of the sources, and a fact that must then be seen otherwise. */
export interface Guard {
  readonly drill: string;
  readonly off: readonly Edit[];
  readonly differs: string;
}

/** What "unique per request" is often read as: a number for each try. */
const NEW_NUMBER_EACH_TRY: Edit = {
  file: 'src/gateway/http.ts',
  from: 'async send(number, body, signal) {',
  to: 'async send(given, text, signal) { const number = `${given}:${Math.random()}`; const body = text.replace(given, number);',
};

/** The ledger takes any key for a period. */
const ANY_KEY: Edit = {
  file: 'migrations/0001_ledger.sql',
  from: "constraint action_key_derives_from_period check (key = job || ':' || period || coalesce(':adj-' || adj, ''))",
  to: 'constraint action_key_derives_from_period check (true)',
};

export const GUARDS: readonly Guard[] = [
  {
    drill: 'effect-without-record',
    off: [{ file: 'src/store/slices.ts', from: 'await work(tx, range)', to: 'await work(db, range)' }],
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
        from: 'return terms.keyWindowMs - terms.timeoutMs;',
        to: 'return terms.keyWindowMs + 86_400_000;',
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
        from: "where key = $1 and fence = $2 and state = 'running' and lease_until > clock_timestamp() for key share",
        to: 'where key = $1 and $2::int8 is not null for key share',
      },
    ],
    differs: 'slices finished under its fence after the takeover',
  },
  {
    drill: 'late-result',
    off: [
      {
        file: 'src/store/outbox-record.ts',
        from: 'where o.number = n.number and o.fence = n.fence and o.state = n.held',
        to: 'where o.number = n.number',
      },
    ],
    differs: 'results that the woken relay recorded',
  },
  {
    drill: 'lost-commit-ack',
    off: [
      {
        file: 'src/store/slices.ts',
        from: 'select slice from onceper.slice where key = $1 and done_at is null order by slice',
        to: 'select slice from onceper.slice where key = $1 order by slice',
      },
      {
        file: 'src/store/slices.ts',
        from: 'where key = $1 and slice = $3 and done_at is null\n     returning',
        to: 'where key = $1 and slice = $3\n     returning',
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
        from: 'const key = businessKey(job.id, due.period);',
        to: 'const key = businessKey(job.id, due.period, String(Number(request.scheduledAt.slice(11, 13))));',
      },
    ],
    differs: 'keys in the ledger',
  },
  {
    drill: 'paused-over-month-end',
    off: [
      {
        file: 'src/ops/schedule.ts',
        from: '({ ...scheduleOptions(plan), state: found.state })',
        to: '({ ...scheduleOptions(plan), state: { ...found.state, paused: false, note: undefined } })',
      },
    ],
    differs: 'runs opened for the instant',
  },
  {
    drill: 'zone-changed',
    off: [
      {
        file: 'src/jobs/settlement/period-row.ts',
        from: 'where p.period = b.period)',
        to: 'where p.period = b.period and p.starts = b.starts)',
      },
      {
        file: 'src/jobs/settlement/period-row.ts',
        from: 'on conflict do nothing',
        to: 'on conflict (period) do update set starts = excluded.starts, ends = excluded.ends',
      },
      {
        file: 'migrations/0002_settlement.sql',
        from: 'if (new.period, new.starts_on, new.ends_on, new.starts, new.ends)',
        to: 'if false and (new.period, new.starts_on, new.ends_on, new.starts, new.ends)',
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
        from: "and (state <> 'running' or lease_until <= clock_timestamp())",
        to: "and state <> 'running'",
      },
    ],
    differs: 'ours: a claim after that',
  },
  {
    drill: 'dropped-answers',
    off: [
      {
        file: 'src/kernel/delivery.ts',
        from: "case 'unknown':\n      return waits('unknown', later, answer.code);",
        to: "case 'unknown':\n      return becomes('failed', answer.code);",
      },
    ],
    differs: 'of these, resolved by look-up',
  },
  {
    drill: 'temporal-erased',
    off: [
      {
        file: 'workflows/tick.ts',
        from: "if (opened.decision === 'admitted' || opened.decision === 'in_progress')",
        to: "if (opened.decision === 'admitted')",
      },
      { file: 'activities/expected.ts', from: 'owners: owners.slice(0, MOST_OWNERS)', to: 'owners: []' },
    ],
    differs: 'the half-way month was finished',
  },
  {
    drill: 'database-rewound',
    off: [
      {
        file: 'src/store/outbox-take.ts',
        from: 'any ($3::text[])\n          and not exists (select from onceper.epoch where frozen_at is not null)',
        to: 'any ($3::text[])',
      },
    ],
    differs: 'effects looked up before anything was sent',
  },
  {
    drill: 'kill-nine',
    off: [{ file: 'src/store/slices.ts', from: 'await work(tx, range)', to: 'await work(db, range)' }],
    differs: 'the key',
  },
];
