import type { Field } from './field.ts';
import { pause } from './pause.ts';
import { askAndApprove } from './people.ts';
import { LATE_FROM } from './plan.ts';

/** Before the storm: the first file is imported, and the schedule applied. */
export async function prepare(field: Field): Promise<void> {
  const { people, load } = field;
  const [first = ''] = load.files;
  await insist(field, () => people.type('alice', ['import', first, '--source', 'generic']));
  await insist(field, () => people.type('alice', ['schedule', 'apply', 'settlement']));
}

/** Whoever pays: asks for one month after the other; the last file is imported, and its month asked for, when no restore can lose it. */
export async function payMonths(
  field: Field,
  of: { began: number; ms: number; restored: Promise<void> },
): Promise<void> {
  const { people, load, asked } = field;
  const { began, ms } = of;
  const early = load.months.slice(0, -1);
  for (const [at, month] of early.entries()) {
    const share = (3 + (at * (LATE_FROM - 3)) / Math.max(1, early.length)) / 100;
    await pause(Math.max(0, began + share * ms - performance.now()));
    asked.add(month);
    await insist(field, () => people.type('alice', ['run', 'settlement', '--period', month]), [0, 5]);
  }
  await of.restored;
  const [last = '', file = ''] = [load.months.at(-1), load.files.at(-1)];
  await insist(field, () => people.type('alice', ['import', file, '--source', 'generic']));
  await pause(Math.max(0, began + (ms * (LATE_FROM + 12)) / 100 - performance.now()));
  asked.add(last);
  await insist(field, () => people.type('alice', ['run', 'settlement', '--period', last]), [0, 5]);
}

/** Types a line again until it ends as a person hopes for; a server may be down for a while. */
async function insist(
  { postgres }: Field,
  type: () => Promise<{ code: number | null; text: string }>,
  hoped: readonly number[] = [0],
): Promise<void> {
  let text = '';
  for (let tries = 0; tries < 40; tries += 1) {
    // Nobody types while the database is known to be down.
    await postgres.untilUp();
    const typed = await type();
    if (typed.code !== null && hoped.includes(typed.code)) return;
    text = typed.text;
    await pause(300);
  }
  throw new Error(`typed forty times in vain: ${text}`);
}

/** How things stand, as whoever is on call sees them. */
export interface Standing {
  readonly frozen: boolean;
  /** Months that are not done, with the word of the ledger for each; `missing` where it has none. */
  readonly open: readonly { readonly month: string; readonly state: string; readonly owner: string | null }[];
  /** Effects whose fate is not known. */
  readonly waiting: number;
  /** Effects that wait for a person. */
  readonly stuck: readonly string[];
  /** Returned by the counterparty's word, which a webhook said that may never have come. */
  readonly delivering: number;
}

export async function standingOf({ postgres, load }: Field): Promise<Standing> {
  const [row] = await postgres.query<{ frozen: boolean; waiting: number; stuck: string[] | null; delivering: number }>(
    `select (select frozen_at is not null from onceper.epoch) as frozen,
            (select count(*)::int4 from onceper.outbox where state not in ('succeeded', 'failed', 'returned')) as waiting,
            (select array_agg(number) from onceper.outbox where state in ('needs_attention', 'dead')) as stuck,
            (select count(*)::int4 from onceper.action where delivering) as delivering`,
  );
  const actions = await postgres.query<{ period: string; state: string; owner_run: string }>(
    `select period, state, owner_run from onceper.action where adj is null`,
  );
  const open = load.months.flatMap((month) => {
    const action = actions.find(({ period }) => period === month);
    if (action?.state === 'done') return [];
    return [{ month, state: action?.state ?? 'missing', owner: action?.owner_run ?? null }];
  });
  return {
    frozen: row?.frozen ?? true,
    open,
    waiting: row?.waiting ?? 1,
    stuck: row?.stuck ?? [],
    delivering: row?.delivering ?? 1,
  };
}

const PATIENCE_MS = 10_000;

/** Whoever is on call while it storms: does what the runbook says, and asks again for a month that stands still. */
export async function beOnCall(field: Field, isOver: () => boolean): Promise<void> {
  let seen = '';
  let since = performance.now();
  while (!isOver()) {
    try {
      const standing = await standingOf(field);
      await act(field, standing, isOver);
      const next = standing.open.find(({ month }) => field.asked.has(month));
      const now = `${next?.month} ${next?.state}`;
      if (now !== seen) [seen, since] = [now, performance.now()];
      if (next !== undefined && performance.now() - since > PATIENCE_MS) {
        since = performance.now();
        await field.people.type('alice', ['run', 'settlement', '--period', next.month]);
      }
    } catch (error) {
      // The database is down: whoever is on call looks again in a moment.
      field.note({ at: new Date().toISOString(), onCall: String(error) });
    }
    await pause(1_000);
  }
}

/** What the runbook says about how things stand; interrupted after a while, since it may be typed again. */
export async function act(field: Field, standing: Standing, isOver: () => boolean): Promise<void> {
  const { people } = field;
  if (standing.frozen) {
    await people.type('alice', ['doctor', '--reconcile-rewind'], isOver() ? 90_000 : 30_000);
    return;
  }
  for (const { state, owner } of standing.open) {
    if (owner === null || (state !== 'exhausted' && state !== 'cancelled')) continue;
    await askAndApprove(people, ['run', '--release', owner, '--reason', 'storm']);
  }
  for (const number of standing.stuck.slice(0, 3)) {
    await people.type('alice', ['outbox', 'retry', number, '--reason', 'storm']);
  }
}
