import type { BackfillStory } from '../ops/backfill.ts';
import type { Backfill, BackfillPeriod } from '../store/backfills.ts';
import type { Session } from './session.ts';
import { table } from './table.ts';
import { linesOf } from './terminal.ts';

/** A backfill in the shape that `--json` prints. */
export interface ShownBackfill {
  readonly backfill: Backfill & Pick<BackfillStory, 'state'>;
  readonly periods: readonly BackfillPeriod[];
}

export function shownBackfill({ backfill, state, periods }: BackfillStory): ShownBackfill {
  return { backfill: { ...backfill, state }, periods };
}

export function renderBackfills(
  session: Session,
  backfills: readonly (Backfill & Pick<BackfillStory, 'state'>)[],
): string {
  if (backfills.length === 0) return 'no backfill was approved';
  const rows = backfills.map(({ id, job, state, actor, beganAt, endedAt }) => {
    return [id, job, state, actor, beganAt, endedAt ?? '-'];
  });
  return table(session, ['id', 'job', 'state', 'asked by', 'began', 'ended'], rows);
}

/** What has become of each period, and the sum of it in one line. */
export function renderBackfill(session: Session, { backfill, state, periods }: BackfillStory): string {
  const { id, job, actor, reason, mostActive, cancelledBy, cancelReason } = backfill;
  const head = [
    `backfill ${id} of ${job}: ${state}`,
    `  asked by  ${actor}, because ${reason}`,
    ...(cancelledBy === null ? [] : [`  cancelled by ${cancelledBy}, because ${cancelReason ?? ''}`]),
    `  at once   ${mostActive}`,
    `  so far    ${sumOf(periods)}`,
  ];
  const rows = periods.map((one) => [one.period, one.act, fateOf(one), one.keyState ?? '-', one.startedAt ?? '-']);
  return `${linesOf(head)}\n\n${table(session, ['period', 'planned', 'became', 'key is now', 'started'], rows)}`;
}

function fateOf({ state, outcome, decision }: BackfillPeriod): string {
  if (state === 'ended') return outcome ?? '';
  if (state !== 'started') return state;
  return decision === null ? 'started' : decision.replaceAll('_', ' ');
}

function sumOf(periods: readonly BackfillPeriod[]): string {
  const counts = new Map<string, number>();
  for (const period of periods) counts.set(fateOf(period), (counts.get(fateOf(period)) ?? 0) + 1);
  return [...counts].map(([fate, count]) => `${count} ${fate}`).join(', ');
}
