import { duePeriod } from '../../jobs/due.ts';
import { estimateUnder } from '../../jobs/estimate.ts';
import type { Job } from '../../jobs/job.ts';
import { nominalTimeOf } from '../../jobs/occasion.ts';
import { type JobRule, periodCalendar } from '../../jobs/rule.ts';
import { type BackfillAct, type BackfillState, backfillAct, MOST_PERIODS, mostActive } from '../../kernel/backfill.ts';
import { OnceperError } from '../../kernel/error.ts';
import { businessKey } from '../../kernel/key.ts';
import { comparePeriods, existingPeriod, periodAfter } from '../../kernel/period.ts';
import type { Instant, Tx } from '../../kernel/sql.ts';
import { type Action, actionByKey } from '../../store/actions.ts';
import { insertBackfill, insertBackfillPeriods } from '../../store/backfills.ts';
import { clockOf } from '../../store/database.ts';
import type { Expected } from '../../store/held-plan.ts';
import { ruleOfKey } from '../../store/rules.ts';
import { sliceCounts } from '../../store/slices.ts';
import { type WaitingRun, waitingRunsOfJob } from '../../store/waiting-runs.ts';
import { giveWaiver } from '../../store/waivers.ts';
import { activeRuleOf } from '../rule.ts';
import { type Act, type ActParts, type Ask, textOf } from './act.ts';

/** What a backfill would do about one period, and what it rests on. `refused` periods let none of it be asked for. */
interface PlannedPeriod {
  readonly period: string;
  readonly state: BackfillState;
  /** The code that its newest run is held for; null where it is not held. */
  readonly heldFor: string | null;
  readonly act: BackfillAct | 'refused';
  readonly why: string | null;
  /** Of the key, as text: 0 where it has no action, null where the backfill leaves it alone. */
  readonly fence: string | null;
  readonly ruleVersion: number | null;
  readonly slices: string | null;
  readonly expected: Expected;
}

/** Exactly what is shown and approved of a backfill. */
export interface BackfillPlan {
  readonly job: string;
  readonly from: string;
  readonly to: string;
  readonly mode: string;
  /** Which of the range's periods it is about; null is all of them. */
  readonly only: Only | null;
  readonly ruleVersion: number;
  readonly mostActive: number;
  readonly periods: readonly PlannedPeriod[];
}

/** Runs of periods that were missed, and periods that failed, with an approval of the whole. */
export const backfill: Act<BackfillPlan> = {
  kinds: ['backfill'],
  async plan(tx, parts, ask) {
    const plan = await planBackfill(tx, parts, ask);
    refuseAny(plan);
    return { subject: `${plan.job} ${plan.from} ${plan.to}`, job: plan.job, key: null, plan };
  },
  async perform(tx, parts, { approval, plan }) {
    const { id } = approval;
    const { rule } = await activeRuleOf(tx, parts.registry, plan.job);
    const { job, periods } = plan;
    await insertBackfill(tx, { ...approval, actor: approval.requestedBy, mostActive: plan.mostActive });
    const rows = periods.map(({ period, act }) => ({
      period,
      key: businessKey(job, period),
      startId: `${id}-${period}`,
      scheduledAt: nominalTimeOf(rule, period),
      act: act === 'refused' ? 'nothing' : act,
    }));
    await insertBackfillPeriods(tx, id, rows);
    for (const { period, act, fence, ...planned } of periods) {
      if (act !== 'run' && act !== 'resume') continue;
      for (const code of waivedCodes(plan.only, planned)) {
        await giveWaiver(tx, { run: `${id}-${period}`, code, fence: BigInt(fence ?? '0'), approval: id });
      }
    }
    return { kind: 'backfill', id };
  },
};

/**
 * What a backfill of `from` to `to` would do about each period, both included. Reads only. Throws OnceperError `unknown_job`,
 * `no_rule`, `malformed_period`, `malformed_range`, `range_too_large`.
 */
export async function planBackfill(tx: Tx, parts: ActParts, ask: Ask): Promise<BackfillPlan> {
  const job = parts.registry.get(textOf(ask, 'job'));
  const { rule, version } = await activeRuleOf(tx, parts.registry, job.id);
  const names = rangeOf(rule, textOf(ask, 'from'), textOf(ask, 'to'));
  const only = onlyOf(ask['only']);
  const now = await clockOf(tx);
  const waiting = new Map((await waitingRunsOfJob(tx, job.id)).map((run) => [run.key, run]));
  const periods: PlannedPeriod[] = [];
  for (const period of names) {
    const planned = await planPeriod(tx, { job, rule, now, waiting }, period);
    if (only === null || ONLY[only].has(planned.state)) periods.push(planned);
  }
  return {
    job: job.id,
    only,
    from: names[0] ?? '',
    to: names.at(-1) ?? '',
    mode: job.needs === 'previous' ? 'in order, each after its predecessor' : 'side by side',
    ruleVersion: version,
    mostActive: mostActive(Number(ask['limit'] ?? USUAL_LIMIT), rule.limits.runsInFlight),
    periods,
  };
}

/** How many periods are under way at once unless the request says otherwise. */
const USUAL_LIMIT = 2;

/** Every period of the range that exists, none twice. */
function rangeOf(rule: JobRule, first: string, last: string): string[] {
  const calendar = periodCalendar(rule);
  const from = existingPeriod(first, calendar);
  const to = existingPeriod(last, calendar);
  if (comparePeriods(from, to, calendar) > 0) {
    throw new OnceperError({
      code: 'malformed_range',
      message: `${from} comes after ${to}`,
      remedy: 'give the earlier period as --from',
      at: `--from ${from} --to ${to}`,
    });
  }
  const periods: string[] = [];
  for (let period = from; comparePeriods(period, to, calendar) <= 0; period = periodAfter(period, calendar)) {
    periods.push(period);
    if (periods.length <= MOST_PERIODS) continue;
    throw new OnceperError({
      code: 'range_too_large',
      message: `${from} to ${to} are more than ${MOST_PERIODS} periods`,
      remedy: 'ask for a part of it, and then for the next',
      at: `--to ${to}`,
    });
  }
  return periods;
}

async function planPeriod(
  tx: Tx,
  of: {
    readonly job: Job;
    readonly rule: JobRule;
    readonly now: Instant;
    readonly waiting: ReadonlyMap<string, WaitingRun>;
  },
  period: string,
): Promise<PlannedPeriod> {
  const key = businessKey(of.job.id, period);
  const action = await actionByKey(tx, key);
  const waits = action === null ? of.waiting.get(key) : undefined;
  const state: BackfillState = action?.state ?? waits?.decision ?? 'missing';
  const heldFor = waits?.decision === 'held' ? waits.code : null;
  const why = refusalOf(of, period);
  const act: PlannedPeriod['act'] = why === null ? backfillAct(state) : 'refused';
  const left = {
    period,
    state,
    heldFor,
    act,
    why,
    fence: null,
    ruleVersion: action?.ruleVersion ?? null,
    slices: null,
  };
  if (act !== 'run' && act !== 'resume') return { ...left, expected: null };
  const stored = await ruleOfKey(tx, { job: of.job.id, pinned: action?.ruleVersion ?? null });
  const about = { key, period, overrides: action?.overrides ?? {} };
  return {
    ...left,
    fence: String(action?.fence ?? 0n),
    ruleVersion: stored?.version ?? null,
    slices: action === null ? null : await slicesOf(tx, action),
    expected: await estimateUnder(tx, of.job, stored, about),
  };
}

async function slicesOf(tx: Tx, { key }: Action): Promise<string> {
  const { done, total } = await sliceCounts(tx, key);
  return `${done} of ${total} done`;
}

/** Why a period can never be run now, or null. */
function refusalOf({ rule, now }: { readonly rule: JobRule; readonly now: Instant }, period: string): string | null {
  const due = duePeriod(rule, nominalTimeOf(rule, period), now);
  return due.kind === 'refused' ? due.reason : null;
}

/**
 * What the approval lets a period's run go on in spite of. A stopped key is claimed again under the fence that was shown; what is
 * missing may only be late; and what is held may be what it was shown to be held for, where the request is about that alone.
 */
function waivedCodes(only: Only | null, { state, heldFor }: Pick<PlannedPeriod, 'state' | 'heldFor'>): string[] {
  if (state === 'exhausted' || state === 'cancelled') return [state];
  return only !== 'held' || heldFor === null || heldFor === 'late' ? ['late'] : ['late', heldFor];
}

/** Which periods of a range a request may be narrowed to, and the states that each word means. */
const ONLY = {
  missing: new Set<BackfillState>(['missing']),
  failed: new Set<BackfillState>(['failed', 'exhausted', 'cancelled']),
  held: new Set<BackfillState>(['held']),
} as const;
type Only = keyof typeof ONLY;

function onlyOf(asked: unknown): Only | null {
  if (asked === undefined || asked === null) return null;
  const found = (Object.keys(ONLY) as Only[]).find((only) => only === asked);
  if (found !== undefined) return found;
  throw new OnceperError({
    code: 'unknown_only',
    message: `${JSON.stringify(asked)} are no periods that a backfill can be narrowed to`,
    remedy: `--only ${Object.keys(ONLY).join('|')}`,
    at: '--only',
  });
}

function refuseAny({ job, from, to, only, periods }: BackfillPlan): void {
  const [first] = periods.filter(({ act }) => act === 'refused');
  if (first !== undefined) throw refused(first.period, first.why ?? 'it can never be run');
  if (periods.some(({ act }) => act === 'run' || act === 'resume')) return;
  throw new OnceperError({
    code: 'nothing_to_backfill',
    message:
      only === null
        ? `every period of ${job} from ${from} to ${to} is finished or under way`
        : `no period of ${job} from ${from} to ${to} is ${only}`,
    remedy: `npx onceper periods ${job} --from ${from} --to ${to}`,
    at: `${from} ${to}`,
  });
}

function refused(period: string, why: string): OnceperError {
  return new OnceperError({
    code: 'backfill_refused',
    message: why,
    remedy: 'ask for the periods that have ended, from the first of the job on; --dry-run shows each',
    at: period,
  });
}
