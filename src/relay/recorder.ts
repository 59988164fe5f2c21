import { setTimeout as delay } from 'node:timers/promises';
import { ACCOUNTS } from '../kernel/destination.ts';
import { codeOf } from '../kernel/error.ts';
import { transaction } from '../store/database.ts';
import { applySaid } from '../store/destinations.ts';
import { FAULTS_OF_THE_DATABASE } from '../store/fault.ts';
import { effectStandings } from '../store/outbox-read.ts';
import { type EffectOutcome, type FinalEffect, recordOutcomes } from '../store/outbox-record.ts';
import type { TakenEffect } from '../store/outbox-take.ts';
import { faultEvent } from './events.ts';
import type { RelayPlan, RelayServices } from './plan.ts';

/** An outcome and the effect that it is of. */
interface Recordable {
  readonly effect: TakenEffect;
  readonly outcome: EffectOutcome;
}

/** Writes outcomes down in batches, two transactions at a time at most, as answers arrive. */
export interface Recorder {
  add(recordable: Recordable): void;
  /** Outcomes that are not written down yet. */
  backlog(): number;
  /** True while an answer that pauses the counterparty is not written down yet. */
  isPausing(): boolean;
  /** Writes at once whatever waits; resolves when nothing does any more. Never rejects. */
  settled(): Promise<void>;
}

/** Answers that arrive within this time share a transaction; as long, a kill turns them into look-ups. */
const LINGER_MS = 15;
const MAX_BATCH = 500;

/** So many that wait open a second lane: one writes while the other's COMMIT waits for the disk. */
const SECOND_LANE_FROM = 200;
const RECORD = {
  label: 'record',
  byIndex: true,
  statementTimeout: 10_000,
  lockTimeout: 5_000,
  idleInTransactionTimeout: 5_000,
};
const RETRY_MS = { first: 50, cap: 1_000 };

/** Starts a recorder; `signal` ends its patience with a database that is away, `onWritten` is called after each batch. */
export function createRecorder(
  services: RelayServices,
  plan: RelayPlan,
  signal: AbortSignal,
  onWritten: () => void,
): Recorder {
  const waiting: Recordable[] = [];
  let writing = 0;
  let pausing = 0;
  let first: Promise<void> | null = null;
  let second: Promise<void> | null = null;
  let hurry: () => void = () => undefined;

  async function write(): Promise<void> {
    const batch = waiting.splice(0, MAX_BATCH);
    writing += batch.length;
    await recordPatiently(services, plan, batch, signal);
    writing -= batch.length;
    pausing -= batch.filter(doesPause).length;
    onWritten();
  }

  async function firstLane(): Promise<void> {
    while (waiting.length > 0) {
      if (waiting.length < MAX_BATCH) await lingered((wake) => (hurry = wake));
      if (waiting.length > 0) await write();
    }
    first = null;
  }

  async function secondLane(): Promise<void> {
    while (waiting.length >= SECOND_LANE_FROM) await write();
    second = null;
  }

  return {
    add(recordable) {
      waiting.push(recordable);
      if (doesPause(recordable)) pausing += 1;
      if (waiting.length >= MAX_BATCH) hurry();
      if (first === null) first = firstLane();
      else if (waiting.length >= SECOND_LANE_FROM) second ??= secondLane();
    },
    backlog: () => waiting.length + writing,
    isPausing: () => pausing > 0,
    async settled() {
      while (first !== null || second !== null) {
        hurry();
        await Promise.all([first, second]);
      }
    },
  };
}

export function doesPause({ outcome }: Pick<Recordable, 'outcome'>): boolean {
  return outcome.said?.kind === 'pauses';
}

function lingered(onWake: (wake: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LINGER_MS);
    onWake(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/**
 * Records a batch through passing faults, until the patience ends. Any other fault belongs to one row of the batch, so the
 * batch is halved until that row stands alone: one subject's failure never stops the others.
 */
async function recordPatiently(
  services: RelayServices,
  plan: RelayPlan,
  batch: readonly Recordable[],
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + plan.recordPatienceMs;
  for (let wait = RETRY_MS.first; ; wait = Math.min(RETRY_MS.cap, wait * 2)) {
    try {
      await record(services, plan, batch);
      return;
    } catch (error) {
      // These pass by themselves: the transaction is rolled back or unknown, and recording again is safe by its fence.
      if (!FAULTS_OF_THE_DATABASE.has(codeOf(error) ?? '')) return recordApart(services, plan, batch, signal, error);
      plan.emit(faultEvent('record', error));
      if (signal.aborted || performance.now() + wait > until) {
        plan.emit({ kind: 'unrecorded', count: batch.length, code: codeOf(error) ?? 'unexpected' });
        return;
      }
    }
    await delay(wait);
  }
}

async function recordApart(
  services: RelayServices,
  plan: RelayPlan,
  batch: readonly Recordable[],
  signal: AbortSignal,
  error: unknown,
): Promise<void> {
  const [only] = batch;
  if (batch.length > 1) {
    const half = batch.length >> 1;
    await recordPatiently(services, plan, batch.slice(0, half), signal);
    await recordPatiently(services, plan, batch.slice(half), signal);
  } else if (only !== undefined) await recordFailed(services, plan, only, signal, error);
}

/**
 * The job could not post this one. The answer is not lost: when the lease ends, a look-up finds it and the posting is tried
 * again, until the look-ups' budget puts it before a person.
 */
async function recordFailed(
  services: RelayServices,
  plan: RelayPlan,
  { effect, outcome }: Recordable,
  signal: AbortSignal,
  error: unknown,
): Promise<void> {
  const { number, job, key } = effect;
  const { fence, verdict } = outcome;
  const fault = faultEvent('record', error);
  const message = fault.kind === 'fault' ? fault.message : '';
  plan.emit({ kind: 'record_failed', number, job, key, fence, code: codeOf(error) ?? 'unexpected', message });
  const isHopeless = effect.lookUps >= plan.terms.budget.lookUps && verdict.state !== 'needs_attention';
  if (!isHopeless) return;
  const attention = { ...verdict, state: 'needs_attention' as const, delayMs: 0, code: 'record_failed' };
  await recordPatiently(services, plan, [{ effect, outcome: { ...outcome, verdict: attention } }], signal);
}

async function record(services: RelayServices, plan: RelayPlan, batch: readonly Recordable[]): Promise<void> {
  const byNumber = new Map(batch.map(({ effect }) => [effect.number, effect]));
  const said = lastSaid(batch);
  const { won, moved } = await transaction(services.db, RECORD, async (tx) => {
    const own = await recordOutcomes(
      tx,
      batch.map(({ outcome }) => outcome),
      async (inner, effects) => {
        for (const [job, part] of byJob(effects, byNumber)) await services.jobs.get(job).settleEffects(inner, part);
      },
    );
    return { won: own, moved: said === null ? null : await applySaid(tx, said, plan.probe) };
  });
  if (moved === 'resumed') plan.emit({ kind: 'resumed', destination: ACCOUNTS });
  if (moved === 'paused' && said?.kind === 'pauses') {
    plan.emit({ kind: 'paused', destination: ACCOUNTS, code: said.code, status: said.status });
  }
  for (const { effect, outcome } of batch) {
    if (!won.has(effect.number)) continue;
    const { number, job, key } = effect;
    const { state, code } = outcome.verdict;
    plan.emit({ kind: 'recorded', number, job, key, fence: outcome.fence, state, code });
  }
  const lost = batch.filter(({ effect }) => !won.has(effect.number)).map(({ effect }) => effect);
  if (lost.length > 0) await reportLost(services, plan, lost);
}

/** What a batch says of the counterparty: the last answer about us before all else, since a pause that is wrong ends by itself. */
function lastSaid(batch: readonly Recordable[]): NonNullable<EffectOutcome['said']> | null {
  const all = batch.flatMap(({ outcome: { said } }) => (said === null || said === undefined ? [] : [said]));
  return all.findLast(({ kind }) => kind === 'pauses') ?? all.at(-1) ?? null;
}

function byJob(
  effects: readonly FinalEffect[],
  byNumber: ReadonlyMap<string, TakenEffect>,
): ReadonlyMap<string, FinalEffect[]> {
  const grouped = new Map<string, FinalEffect[]>();
  for (const effect of effects) {
    const job = byNumber.get(effect.number)?.job ?? '';
    const own = grouped.get(job);
    if (own === undefined) grouped.set(job, [effect]);
    else own.push(effect);
  }
  return grouped;
}

/** Effects that another relay or a webhook has taken over: read again, so that the log says what became of them. */
export async function reportLost(
  services: RelayServices,
  plan: RelayPlan,
  effects: readonly TakenEffect[],
): Promise<void> {
  try {
    const standings = await effectStandings(
      services.db,
      effects.map((effect) => effect.number),
    );
    const states = new Map(standings.map((standing) => [standing.number, standing.state]));
    for (const { number, job, key, fence } of effects) {
      plan.emit({ kind: 'lost', number, job, key, fence, state: states.get(number) ?? null });
    }
  } catch (error) {
    plan.emit(faultEvent('reread', error));
  }
}
