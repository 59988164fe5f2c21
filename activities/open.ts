import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { duePeriod, periodsAhead } from '../src/jobs/due.ts';
import { contextUnder, estimateUnder } from '../src/jobs/estimate.ts';
import type { Job } from '../src/jobs/job.ts';
import { isLeftOut, isScheduled } from '../src/jobs/occasion.ts';
import { type JobRule, storedRule } from '../src/jobs/rule.ts';
import { actorId } from '../src/kernel/actor.ts';
import { OnceperError } from '../src/kernel/error.ts';
import { normaliseInstant } from '../src/kernel/instant.ts';
import { businessKey } from '../src/kernel/key.ts';
import type { Instant, Tx } from '../src/kernel/sql.ts';
import type { Trigger } from '../src/kernel/transitions.ts';
import { actionByKey } from '../src/store/actions.ts';
import { workerActor } from '../src/store/audit-ledger.ts';
import { clockOf, transaction } from '../src/store/database.ts';
import type { Expect } from '../src/store/held-plan.ts';
import { knownStart } from '../src/store/intents.ts';
import { deferRun, type Opened, openRun, refuseRun } from '../src/store/open.ts';
import { activeRule, isOneOff, type StoredRule } from '../src/store/rules.ts';
import { type RunRequest, runByStartId } from '../src/store/runs.ts';
import { skipAction } from '../src/store/stop.ts';
import type { ActivityServices } from './services.ts';

/** A start as a tick tells of it. Whoever may use Temporal can write any: of people, and of what they state, it says nothing. */
export interface OpenInput {
  readonly startId: string;
  readonly job: string;
  readonly scheduledAt: Instant | null;
  /** `check` is the check of expected periods, which starts what the schedule should have. */
  readonly door: 'schedule' | 'run' | 'backfill' | 'check';
  /** The schedule that fired, as Temporal says. */
  readonly schedule?: string;
}

/** A start as the ledger knows it: by whom, with what they state. The nominal time is the occasion's, or what the door stamped. */
export interface Start extends Omit<OpenInput, 'schedule'> {
  readonly actor: string;
  readonly overrides: Readonly<Record<string, string>>;
}

/** What the tick needs to know of the decision; all else is read from the ledger by those who want it. */
export interface OpenOutput {
  readonly run: string;
  readonly decision: Opened['run']['decision'];
  readonly code: string;
  readonly reason: string;
  readonly job: string;
  readonly key: string | null;
  readonly period: string | null;
  /** The run that owns the key: its period workflow is started for `admitted` and for `in_progress`. */
  readonly owner: string | null;
  readonly askAgainMs: number | null;
  readonly result: unknown;
}

/**
 * Records and decides a run (store/open.ts has the guarantees), by whoever wrote its start down in the ledger, and with what they
 * state. A start that nobody wrote down is Temporal's own: it states nothing. Asked twice with one start id it answers the same.
 */
export async function open(services: ActivityServices, input: OpenInput): Promise<OpenOutput> {
  const known = await knownStart(services.db, input.startId, input.job);
  if (known !== null) return openStart(services, { ...input, ...known });
  return openStart(services, { ...input, ...unaskedDoor(input), overrides: {} });
}

/** By whom a start is that no person wrote down: the job's own schedule, the check of it, or whoever may use Temporal. */
function unaskedDoor({ door, startId, schedule, job }: OpenInput): Pick<Start, 'door' | 'actor'> {
  if (door === 'check' && startId.startsWith(checkStartId(job, ''))) return { door, actor: 'expect' };
  if (door === 'schedule') return { door, actor: schedule === job ? actorId('schedule', job) : 'temporal' };
  return { door: 'run', actor: 'temporal' };
}

/** The id of the run that the check starts for a period: found missing by every check until the ledger knows it, it is one run. */
export function checkStartId(job: string, period: string): string {
  return `${job}-expect-${period}`;
}

/** Records and decides a start whose asker is known. */
export async function openStart(services: ActivityServices, start: Start): Promise<OpenOutput> {
  const opened = await decide(services, await asFirstAsked(services, start));
  const { run, action } = opened;
  const { startId, job, key, decision, code, trigger } = run;
  services.log({ event: 'run_decided', job, run: startId, decision, code, trigger, ...(key === null ? {} : { key }) });
  return {
    run: startId,
    decision,
    code,
    reason: run.reason,
    job,
    key,
    period: run.period,
    owner: action?.ownerRun ?? null,
    askAgainMs: opened.askAgainMs,
    result: decision === 'duplicate' ? action?.result : null,
  };
}

/** A run with the door it came by, and whether it is asked for the first time. */
type Asked = RunRequest & { readonly door: string; readonly isNew: boolean };

/** A run that is asked again keeps the time, actor and overrides it was stored with: only its decision may change. */
async function asFirstAsked(services: ActivityServices, start: Start): Promise<Asked> {
  const stored = await runByStartId(services.db, start.startId);
  if (stored !== null) return { ...stored, door: start.door, isNew: false };
  const { startId, job, scheduledAt, door, actor, overrides } = start;
  const trigger: Trigger = door === 'run' ? 'manual' : door === 'check' ? 'schedule' : door;
  return { startId, job, scheduledAt, door, actor, overrides, trigger, period: null, key: null, isNew: true };
}

async function decide(services: ActivityServices, request: Asked): Promise<Opened> {
  const { db, registry, release } = services;
  if (request.scheduledAt === null) {
    return refuse(services, request, 'no_nominal_time', 'the start carries no nominal time, and none may be guessed');
  }
  try {
    const asked = { ...request, scheduledAt: normaliseInstant(request.scheduledAt) };
    const job = registry.find(request.job);
    // Not refused: a worker of another release may know it, and a rule may be loaded yet.
    if (job === null) return await deferRun(db, asked, 'unknown_job', `release ${release} knows no job ${request.job}`);
    const stored = await activeRule(db, request.job);
    if (stored === null) return await deferRun(db, asked, 'no_rule', `no rule is loaded for ${request.job}`);
    job.checkOverrides(request.overrides);
    return await openDue(services, job, stored, asked);
  } catch (error) {
    if (!(error instanceof OnceperError) || !MALFORMED.has(error.code)) throw error;
    const scheduledAt = error.code === 'malformed_instant' ? null : request.scheduledAt;
    return refuse(services, { ...request, scheduledAt }, error.code, `${error.message}; ${error.remedy}`);
  }
}

/** What a caller spelled wrong: the run is refused with the sentence that says so. */
const MALFORMED: ReadonlySet<string> = new Set([
  'unknown_override',
  'malformed_override',
  'malformed_instant',
  'malformed_period',
]);

async function openDue(
  services: ActivityServices,
  job: Job,
  stored: StoredRule,
  request: Asked & { scheduledAt: Instant },
): Promise<Opened> {
  const { db } = services;
  const rule = storedRule(stored);
  const now = await clockOf(db);
  const due = duePeriod(rule, request.scheduledAt, now);
  const trigger = await triggerOf(services, rule, request);
  if (due.kind === 'refused') {
    return refuse(services, { ...request, trigger, period: due.period }, due.code, due.reason);
  }
  const key = businessKey(job.id, due.period);
  const run = { ...request, trigger, period: due.period, key };
  const admission = {
    fingerprint: fingerprintOf(run),
    ruleVersion: stored.version,
    release: services.release,
    startWindowMs: rule.startWindowSeconds * 1000,
  };
  const needsPrevious = job.needs === 'previous' && due.predecessor !== null;
  const predecessor = needsPrevious ? { period: due.predecessor, key: businessKey(job.id, due.predecessor) } : null;
  const asked = { run, admission, predecessor, late: due.late, limits: rule.limits };
  const hooks = hooksOf(services, job, rule, stored, run, now);
  const isMissed = trigger === 'schedule' && request.isNew && isLeftOut(rule, due, request.scheduledAt, now);
  if (isMissed) await leaveOut(services, job, { ...stored, rule }, { key, period: due.period }, hooks);
  return openRun(db, asked, hooks);
}

/**
 * Skips the period of a firing that was missed, as the rule says of those: recorded once, with its reason, by whichever worker
 * opens it. A key that has an action is left to it.
 */
async function leaveOut(
  { db, release }: ActivityServices,
  job: Job,
  { version, rule }: StoredRule & { readonly rule: JobRule },
  about: { readonly key: string; readonly period: string },
  hooks: { readonly prepare: () => Promise<void> },
): Promise<void> {
  if ((await actionByKey(db, about.key)) !== null) return;
  await hooks.prepare();
  const reason = `by policy: its firing was missed, and the rule makes up for ${rule.missedFirings} of those`;
  const skip = { ...about, job: job.id, actor: workerActor(release), reason, ruleVersion: version, release };
  await skipAction(db, skip, async (tx) => job.skip?.(tx, about));
}

function hooksOf(
  services: ActivityServices,
  job: Job,
  rule: JobRule,
  stored: StoredRule,
  run: { period: string; key: string; overrides: Readonly<Record<string, string>> },
  now: Instant,
) {
  return {
    prepare: () =>
      transaction(services.db, { lockTimeout: 15_000 }, (tx) => job.preparePeriods(tx, periodsAhead(rule, now))),
    inspect: (tx: Tx) => job.inspect(tx, contextUnder(stored, run)),
    expect: (tx: Tx, about: Parameters<Expect>[1], pinned: StoredRule | null) => estimateUnder(tx, job, pinned, about),
  };
}

/** Temporal can't tell its schedule from a raw trigger or backfill; the calendar can. */
async function triggerOf(
  services: ActivityServices,
  rule: JobRule,
  request: Asked & { scheduledAt: Instant },
): Promise<Trigger> {
  if (request.door !== 'schedule') return request.trigger;
  const planned =
    isScheduled(rule, request.scheduledAt) || (await isOneOff(services.db, request.job, request.scheduledAt));
  return planned ? 'schedule' : 'manual';
}

/** A digest of what was asked, the same for every spelling of the same meaning (RFC 8785). */
function fingerprintOf(run: { job: string; period: string; overrides: Readonly<Record<string, string>> }): string {
  const { job, period, overrides } = run;
  return createHash('sha256')
    .update(canonicalize({ job, period, overrides }) ?? '')
    .digest('hex');
}

async function refuse(services: ActivityServices, run: RunRequest, code: string, reason: string): Promise<Opened> {
  const stored = await refuseRun(services.db, { ...run, key: null }, code, reason);
  return { run: stored, action: null, askAgainMs: null };
}
