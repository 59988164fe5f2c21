import { type ExpectedPeriod, expectPeriods } from '../../jobs/expectation.ts';
import type { Registry } from '../../jobs/registry.ts';
import { storedRule } from '../../jobs/rule.ts';
import { businessKey, parseKey } from '../../kernel/key.ts';
import type { Instant } from '../../kernel/sql.ts';
import { HAS_RESULT } from '../../kernel/transitions.ts';
import { actionsOfJob } from '../../store/actions.ts';
import { clockOf, type Database } from '../../store/database.ts';
import type { LostNumbers } from '../../store/listing.ts';
import { activeRule } from '../../store/rules.ts';
import { runByStartId } from '../../store/runs.ts';
import { type WaitingRun, waitingRunsOfJob } from '../../store/waiting-runs.ts';
import { releaseCommand } from '../commands.ts';
import { type PlannedRun, planRun } from '../run.ts';

/** A key that must be settled again, and what keeps it from that. */
export interface Waiting {
  readonly key: string;
  /** The ledger's word for where it stands; `missing` where nothing has asked for it yet. */
  readonly state: string;
  /** True where it goes on by itself; else a person must do something first. */
  readonly goesOn: boolean;
  readonly reason: string;
}

/** What drives keys: Temporal, and the memory of what this process has started already. */
export interface Driver {
  readonly db: Database;
  readonly registry: Registry;
  /** Starts the run's tick; one that runs already is left to itself. */
  readonly startRun: (
    run: Pick<PlannedRun, 'id' | 'job' | 'key' | 'scheduledAt' | 'overrides'>,
    door: 'run' | 'release',
  ) => Promise<void>;
  /** Starts the owner's workflow under its key, also where Temporal has completed one for a ledger that is gone. */
  readonly startOwner: (owner: {
    readonly job: string;
    readonly period: string;
    readonly key: string;
    readonly run: string;
  }) => Promise<void>;
  /** Whether Temporal remembers that it has completed a key's workflow. */
  readonly isCompleted: (key: string) => Promise<boolean>;
  /** What was started, so that each is started once a process. */
  readonly started: Set<string>;
}

/** Keys that are settled: with their document, or skipped. */
export async function settledKeys({ db, registry }: Pick<Driver, 'db' | 'registry'>): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for (const job of registry.ids) {
    for (const { key, state } of await actionsOfJob(db, job)) if (SETTLED.has(state)) keys.add(key);
  }
  return keys;
}

/**
 * Starts whatever the ledger says is unfinished, and the lost keys that nothing asks for, each once a process: run twice, or by
 * two processes, it only asks twice. Returns the lost keys, and those that they wait for, that are not settled yet; and those that
 * were `settled` before it was known that they are lost, which nothing but a person can change.
 */
export async function driveLost(
  driver: Driver,
  lost: readonly LostNumbers[],
  settled: ReadonlySet<string>,
): Promise<Waiting[]> {
  const waiting: Waiting[] = [];
  for (const job of driver.registry.ids) {
    await driveOwners(driver, job);
    if (lost.some(({ key }) => parseKey(key).job === job)) {
      waiting.push(...(await driveJob(driver, job, lost, settled)));
    }
  }
  return waiting;
}

async function driveOwners(driver: Driver, job: string): Promise<void> {
  for (const { key, period, state, ownerRun: run } of await actionsOfJob(driver.db, job)) {
    if (state !== 'admitted' && state !== 'running' && state !== 'failed') continue;
    await once(driver, `owner ${run}`, () => driver.startOwner({ job, period, key, run }));
  }
}

/** Every period that has ended of a job, and the runs that wait; null where it has no rule. */
async function standingOf(
  { db }: Pick<Driver, 'db'>,
  job: string,
): Promise<{ readonly expected: readonly ExpectedPeriod[]; readonly runs: readonly WaitingRun[] } | null> {
  const stored = await activeRule(db, job);
  if (stored === null) return null;
  const rule = storedRule(stored);
  const [actions, runs] = [await actionsOfJob(db, job), await waitingRunsOfJob(db, job)];
  return { expected: expectPeriods(rule, await clockOf(db), { actions, waiting: runs }), runs };
}

/**
 * Keys that Temporal has completed and that nothing in this ledger asks for, besides those that are known to be lost: they paid
 * nobody, or nobody yet. Left alone, their next start would be taken for another rewind.
 */
export async function forgottenKeys(driver: Driver, lost: readonly LostNumbers[]): Promise<LostNumbers[]> {
  const known = new Set(lost.map(({ key }) => key));
  const forgotten: LostNumbers[] = [];
  for (const job of driver.registry.ids) {
    for (const { period, state } of (await standingOf(driver, job))?.expected ?? []) {
      const key = businessKey(job, period);
      const isMissing = state === 'missing' || state === 'not_yet_due';
      if (isMissing && !known.has(key) && (await driver.isCompleted(key))) forgotten.push({ key, numbers: 0 });
    }
  }
  return forgotten;
}

/** A job whose months follow each other needs those before a lost one too: the ledger that settled it had them all. */
async function driveJob(
  driver: Driver,
  job: string,
  lost: readonly LostNumbers[],
  settled: ReadonlySet<string>,
): Promise<Waiting[]> {
  const { registry } = driver;
  const standing = await standingOf(driver, job);
  const numbers = new Map(lost.map(({ key, numbers: n }) => [key, n]));
  if (standing === null) {
    const keys = [...numbers.keys()].filter((key) => parseKey(key).job === job);
    return keys.map((key) => byPerson(key, 'missing', `no rule is loaded for ${job}`));
  }
  const { expected, runs } = standing;
  const lastLost = expected.findLastIndex(({ period }) => numbers.has(businessKey(job, period)));
  const needsPrevious = registry.get(job).needs === 'previous';
  const waiting: Waiting[] = [];
  for (const { period, state, reason } of expected.slice(0, lastLost + 1)) {
    const key = businessKey(job, period);
    const n = numbers.get(key);
    const isSettled = SETTLED.has(state);
    if (n === undefined ? isSettled || !needsPrevious : isSettled && !settled.has(key)) continue;
    const run = runs.find((one) => one.key === key)?.startId ?? null;
    waiting.push(
      needsPrevious && waiting.some(({ goesOn }) => !goesOn)
        ? byPerson(key, state, 'what is before it comes first')
        : await driveKey(driver, { job, period, key, numbers: n ?? 0, state, reason, run }),
    );
  }
  return waiting;
}

const SETTLED: ReadonlySet<string> = new Set([...HAS_RESULT, 'skipped']);

interface Found {
  readonly job: string;
  readonly period: string;
  readonly key: string;
  /** How many numbers of it the counterparty knows and the outbox lacks. */
  readonly numbers: number;
  readonly state: string;
  readonly reason: string | null;
  readonly run: string | null;
}

async function driveKey(driver: Driver, found: Found): Promise<Waiting> {
  const { job, period, key, state, run, numbers } = found;
  const reason = found.reason ?? '';
  switch (state) {
    case 'missing':
    case 'not_yet_due':
      await once(driver, `run ${key}`, async () => {
        const when = { kind: 'period', period } as const;
        await driver.startRun(await planRun(driver.db, driver.registry, { job, when, overrides: {} }), 'run');
      });
      return goesOn(key, state, 'its run was started, and no worker has decided it yet');
    case 'deferred':
      await once(driver, `run ${run}`, () => askAgain(driver, run ?? '', key));
      return goesOn(key, state, reason);
    case 'admitted':
    case 'running':
    case 'failed':
    case 'stalled':
      return goesOn(key, state, reason === '' ? 'it is being settled' : `${reason}; a worker takes it over`);
    case 'held':
      return byPerson(key, state, `${reason} — ${releaseCommand(run ?? '')}`);
    case 'exhausted':
    case 'cancelled':
      return byPerson(key, state, `it was stopped — npx onceper why ${key}`);
    default:
      return byPerson(
        key,
        state,
        `it is settled here without ${numbers} numbers that were paid: rows that it was settled from are lost`,
      );
  }
}

async function askAgain(driver: Driver, run: string, key: string): Promise<void> {
  const stored = await runByStartId(driver.db, run);
  if (stored === null || stored.scheduledAt === null) return;
  const { job, overrides } = stored;
  const scheduledAt: Instant = stored.scheduledAt;
  await driver.startRun({ id: run, job, key, scheduledAt, overrides }, 'release');
}

async function once(driver: Driver, what: string, start: () => Promise<void>): Promise<void> {
  if (driver.started.has(what)) return;
  await start();
  driver.started.add(what);
}

function goesOn(key: string, state: string, reason: string): Waiting {
  return { key, state, goesOn: true, reason };
}

function byPerson(key: string, state: string, reason: string): Waiting {
  return { key, state, goesOn: false, reason };
}
