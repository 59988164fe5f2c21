import type pg from 'pg';
import { type Model, type ModelKey, PERIODS } from './ledger-model.ts';
import { NOMINAL_TIMES, periodName } from './model-job.ts';

/** Everything that the ledger and the job's own tables show of one job; the clock's readings as true or false. */
export interface Observed {
  readonly actions: readonly Row[];
  readonly attempts: readonly Row[];
  readonly slices: readonly Row[];
  readonly runs: readonly Row[];
  readonly effects: readonly Row[];
  readonly entries: readonly Row[];
  readonly documents: readonly Row[];
  readonly seals: readonly Row[];
}

type Row = Readonly<Record<string, unknown>>;

export function keyName(job: string, period: number): string {
  return `${job}:${periodName(period)}`;
}

/** What the database shows, in one statement; `client` prepares it once. */
export async function observe(client: pg.Pool, job: string, startIds: readonly string[]): Promise<Observed> {
  const keys = Array.from({ length: PERIODS }, (_, period) => keyName(job, period));
  const { rows } = await client.query<{ observed: Observed }>({
    name: 'observe',
    text: OBSERVE,
    values: [keys, startIds, `${job}:`, `${job};`],
  });
  const [row] = rows;
  if (row === undefined) throw new Error('the observation gave no row');
  return row.observed;
}

/** Effects are found by the range of their numbers, which begin with the key, in whatever state they are. */
const OBSERVE = `
select json_build_object(
  'actions', (select coalesce(json_agg(json_build_object('key', key, 'state', state, 'fence', fence, 'owner', owner_run,
        'exec', owner_exec, 'pass', owner_pass, 'live', state = 'running' and lease_until > clock_timestamp(),
        'overrides', overrides, 'ruleVersion', rule_version, 'budgetFrom', budget_from, 'delivering', delivering,
        'document', result -> 'document' ->> 'id', 'sealed', sealed_at is not null, 'ended', done_at is not null,
        'skipped', skipped_reason is not null) order by key), '[]')
      from onceper.action where key = any ($1)),
  'attempts', (select coalesce(json_agg(json_build_object('key', key, 'run', run, 'number', number, 'exec', execution,
        'pass', pass, 'fence', fence, 'outcome', outcome, 'code', code, 'begun', slices_begun, 'finished', slices_finished)
        order by key, fence), '[]')
      from onceper.attempt where key = any ($1)),
  'slices', (select coalesce(json_agg(json_build_object('key', key, 'slice', slice, 'fence', fence) order by key, slice), '[]')
      from onceper.slice where key = any ($1)),
  'runs', (select coalesce(json_agg(json_build_object('startId', start_id, 'repeatOf', repeat_of, 'trigger', trigger,
        'at', to_char(scheduled_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'key', key, 'overrides', overrides,
        'decision', decision, 'code', code, 'released', released_at is not null) order by start_id), '[]')
      from onceper.run where start_id = any ($2)),
  'effects', (select coalesce(json_agg(json_build_object('number', number, 'fence', written_by_fence, 'state', state)
        order by number), '[]')
      from onceper.outbox where number >= $3 and number < $4),
  'entries', (select coalesce(json_agg(json_build_object('key', key, 'subject', subject, 'fence', fence)
        order by key, subject), '[]')
      from tiny.entry where key = any ($1)),
  'documents', (select coalesce(json_agg(json_build_object('key', key, 'fence', fence, 'entries', entries) order by key), '[]')
      from tiny.document where key = any ($1)),
  'seals', (select coalesce(json_agg(json_build_object('key', key) order by key), '[]')
      from tiny.seal where key = any ($1))) as observed`;

/** What the model shows, in the same shape. */
export function projected(model: Model, job: string): Observed {
  const each = (rows: (key: ModelKey, name: string) => readonly Row[]) =>
    model.keys.flatMap((key, period) => rows(key, keyName(job, period)));
  const finished = (key: ModelKey) =>
    key.slices.flatMap((fence, at) =>
      fence === null ? [] : [{ subject: `s-${String(at + 1).padStart(4, '0')}`, fence }],
    );
  return {
    actions: each((key, name) => actionRow(key, name)),
    attempts: each((key, name) => key.attempts.map((attempt) => ({ key: name, ...attempt }))),
    slices: each((key, name) => key.slices.map((fence, slice) => ({ key: name, slice, fence }))),
    runs: model.runs
      .map(({ startId, repeatOf, trigger, overrides, decision, code, released, period, at }) => {
        const run = { startId, repeatOf, trigger, overrides, decision, code, released };
        return { ...run, key: keyName(job, period), at: NOMINAL_TIMES[period]?.[at] };
      })
      .toSorted((a, b) => (a.startId < b.startId ? -1 : 1)),
    effects: each((key, name) =>
      finished(key).map(({ subject, fence }) => ({ number: `${name}:${subject}:GBP:payout`, fence, state: 'pending' })),
    ),
    entries: each((key, name) => finished(key).map(({ subject, fence }) => ({ key: name, subject, fence }))),
    documents: each((key, name) =>
      key.documentFence === null ? [] : [{ key: name, fence: key.documentFence, entries: key.slices.length }],
    ),
    seals: each((key, name) => (key.action?.sealed === true ? [{ key: name }] : [])),
  };
}

function actionRow({ action, slices }: ModelKey, name: string): readonly Row[] {
  if (action === null) return [];
  const done = action.state === 'done';
  return [
    {
      ...action,
      key: name,
      live: action.state === 'running' && action.live,
      delivering: done && slices.length > 0,
      document: done ? `doc-${name}` : null,
      ended: done,
      skipped: action.state === 'skipped',
    },
  ];
}
