import { keyAt, type Model, type ModelAction, type ModelRun, type Overrides, runOf } from './ledger-model.ts';
import type { Answer, Steps } from './steps.ts';

export interface OpenCommand {
  readonly kind: 'open';
  readonly startId: string;
  readonly period: number;
  readonly door: 'schedule' | 'run' | 'backfill';
  readonly at: number;
  readonly overrides: Overrides;
}

type Waivers = readonly (readonly [code: string, fence: number])[];
type Verdict = readonly [decision: string, code: string];

const UNDECIDED = ['deferred', 'held'];
const UNDER_WAY = ['admitted', 'running', 'failed'];

/** One decision a run, stored; `deferred` and `held` are decided anew, everything else is given back. */
export function* openSteps(model: Model, command: OpenCommand): Steps {
  const asked: Asked = runOf(model, command.startId) ?? firstAsked(command);
  const version = model.activeRule;
  yield 'step';
  const stored = runOf(model, command.startId);
  if (stored !== null && !UNDECIDED.includes(stored.decision)) {
    yield 'step';
    return answer(model, stored);
  }
  const waivers = [...(stored?.waivers ?? [])];
  yield 'step';
  const { action } = keyAt(model, asked.period);
  const verdict = action === null ? null : onExisting(action, asked.overrides, waivers);
  if (verdict !== null && !['admitted', 'held'].includes(verdict[0])) {
    // A duplicate writes its run row alone; every other decision is stored in a transaction with its audit entry.
    yield verdict[0] === 'duplicate' ? 'step' : 'gate';
    const run = record(model, asked, verdict);
    yield 'step';
    return answer(model, run);
  }
  yield 'gate';
  yield 'job';
  model.jobLock = asked.startId;
  const judged = judge(model, asked, waivers);
  yield 'step';
  const run = decide(model, asked, { judged, waivers, version });
  model.jobLock = null;
  if (run === null) return { kind: 'error', code: 'open_raced' };
  yield 'step';
  return answer(model, run);
}

type Asked = Pick<ModelRun, 'startId' | 'period' | 'at' | 'trigger' | 'overrides'>;

function firstAsked(command: OpenCommand): Asked {
  const { startId, period, at, overrides } = command;
  const trigger = { schedule: at === 0 ? 'schedule' : 'manual', run: 'manual', backfill: 'backfill' } as const;
  return { startId, period, at, overrides, trigger: trigger[command.door] };
}

/** A hold is passed by a waiver of that reason, under the fence that the key has. */
function passes(waivers: Waivers, code: string, fence: number): boolean {
  return waivers.some((waiver) => waiver[0] === code && waiver[1] === fence);
}

function onExisting(action: ModelAction, stated: Overrides, waivers: Waivers): Verdict {
  if (action.state === 'skipped') return ['refused', 'period_skipped'];
  const other = Object.entries(stated).some(([name, value]) => action.overrides[name] !== value);
  if (other) return ['conflict', 'override_conflict'];
  if (action.state === 'done') return ['duplicate', 'already_done'];
  if (UNDER_WAY.includes(action.state)) return ['in_progress', 'owned'];
  return passes(waivers, action.state, action.fence) ? ['admitted', 'released'] : ['held', action.state];
}

/**
 * A free key. Held comes before deferred, but for `empty`: whether a balance is carried into the period is not known before
 * its predecessor is done.
 */
function onFree(model: Model, asked: Asked, waivers: Waivers): Verdict {
  const { late, inspection, needsPrevious, runsInFlight } = model.world;
  if (!passes(waivers, 'late', 0) && late) return ['held', 'late'];
  if (!passes(waivers, 'no_fee_rule', 0) && inspection === 'no_fee_rule') return ['held', 'no_fee_rule'];
  const previous = model.keys[asked.period - 1]?.action?.state ?? 'none';
  if (needsPrevious && asked.period > 0 && previous !== 'done' && previous !== 'skipped') {
    return ['deferred', 'predecessor_not_done'];
  }
  if (!passes(waivers, 'empty', 0) && inspection === 'empty' && asked.overrides['empty'] !== 'true')
    return ['held', 'empty'];
  const inFlight = model.keys.filter((key) => UNDER_WAY.includes(key.action?.state ?? '')).length;
  if (runsInFlight !== null && inFlight >= runsInFlight) return ['deferred', 'too_many_in_flight'];
  return ['admitted', 'admitted'];
}

function judge(model: Model, asked: Asked, waivers: Waivers): Verdict {
  const { action } = keyAt(model, asked.period);
  return action === null ? onFree(model, asked, waivers) : onExisting(action, asked.overrides, waivers);
}

/** Null where the run was decided otherwise meanwhile, so that nothing may be won for it. */
function decide(
  model: Model,
  asked: Asked,
  by: { judged: Verdict; waivers: Waivers; version: 1 | 2 },
): ModelRun | null {
  if (by.judged[0] !== 'admitted') return record(model, asked, by.judged);
  const key = keyAt(model, asked.period);
  const { action } = key;
  const verdict = action === null ? null : onExisting(action, asked.overrides, by.waivers);
  if (verdict !== null && verdict[0] !== 'admitted') return record(model, asked, verdict);
  const stored = runOf(model, asked.startId);
  if (stored !== null && !UNDECIDED.includes(stored.decision) && stored.decision !== 'admitted') return null;
  const owned = { state: 'admitted', owner: asked.startId, exec: null, pass: null, live: true } as const;
  if (action === null) {
    const { overrides } = asked;
    key.action = { ...owned, fence: 0, overrides, ruleVersion: by.version, budgetFrom: 0, sealed: false };
  } else {
    Object.assign(action, owned, { budgetFrom: action.fence });
  }
  return record(model, asked, by.judged);
}

/** A start id keeps its decision; a nominal time that another start id holds makes the run a repeat of that one. */
function record(model: Model, asked: Asked, [decision, code]: Verdict): ModelRun {
  const stored = runOf(model, asked.startId);
  if (stored !== null) {
    if (UNDECIDED.includes(stored.decision)) Object.assign(stored, { decision, code });
    return stored;
  }
  const first = model.runs.find((run) => run.period === asked.period && run.at === asked.at && run.repeatOf === null);
  const run: ModelRun = { ...asked, repeatOf: first?.startId ?? null, decision, code, released: false, waivers: [] };
  model.runs.push(run);
  return run;
}

function answer(model: Model, run: ModelRun): Answer {
  const { action } = keyAt(model, run.period);
  return {
    kind: 'opened',
    decision: run.decision,
    code: run.code,
    owner: action?.owner ?? null,
    hasResult: run.decision === 'duplicate' && action?.state === 'done',
    asksAgain: run.decision === 'deferred',
  };
}
