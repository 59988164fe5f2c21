import { setTimeout as delay } from 'node:timers/promises';
import { isStalled } from '../jobs/expectation.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { ActionState, Decision } from '../kernel/transitions.ts';
import { actionByKey } from '../store/actions.ts';
import { type DestinationStanding, readPause } from '../store/destinations.ts';
import { effectCounts, noticeCounts } from '../store/outbox-read.ts';
import { runByStartId } from '../store/runs.ts';
import { sliceCounts } from '../store/slices.ts';
import { type Document, documentOf } from './document.ts';

/** What became of a run, in the shape that `run --json` prints. `decision` is null while no worker has decided it. */
export interface RunReport {
  readonly key: string | null;
  readonly run: string;
  readonly decision: Decision | null;
  /** What close stored, whatever the job's result is; null while the key is not done. */
  readonly result: unknown;
  /** The same where it is a document with totals. */
  readonly document: Document | null;
  /** Effects that move money, by state. */
  readonly effects: Readonly<Record<string, number>>;
  /** What is told to receivers of webhooks, by state. */
  readonly notices: Readonly<Record<string, number>>;
  readonly code: string | null;
  readonly reason: string | null;
  readonly decidedAt: Instant | null;
  /** The run that owns the key; this one, where it was admitted. */
  readonly owner: string | null;
  /** The state of the key's action, or null where it has none. */
  readonly state: ActionState | null;
  readonly slices: { readonly total: number; readonly done: number };
  readonly stalled: boolean;
  /** The pause of the counterparty, for which payouts wait; null while it is open. */
  readonly pause: DestinationStanding | null;
}

/** Reads a run and what has become of its key. */
async function readRun(tx: Tx, id: string, key: string | null): Promise<RunReport> {
  const run = await runByStartId(tx, id);
  const known = run === null ? key : run.key;
  const action = run === null || known === null ? null : await actionByKey(tx, known);
  return {
    key: known,
    run: id,
    decision: run?.decision ?? null,
    result: action?.result ?? null,
    document: action === null ? null : documentOf(action.result),
    effects: action === null ? {} : await effectCounts(tx, action.key),
    notices: action === null ? {} : await noticeCounts(tx, action.key),
    code: run?.code ?? null,
    reason: run?.reason ?? null,
    decidedAt: run?.decidedAt ?? null,
    owner: action?.ownerRun ?? null,
    state: action?.state ?? null,
    slices: action === null ? { total: 0, done: 0 } : await sliceCounts(tx, action.key),
    stalled: action !== null && isStalled(action),
    pause: await readPause(tx),
  };
}

/** True when waiting longer can change nothing by itself: the key is finished or stopped, or the run was turned away. */
export function isSettled(report: RunReport): boolean {
  switch (report.decision) {
    case null:
    case 'deferred':
      return false;
    case 'refused':
    case 'conflict':
    case 'held':
    case 'duplicate':
      return true;
    case 'admitted':
    case 'in_progress':
      return report.state !== null && !UNDER_WAY.has(report.state);
  }
}

const UNDER_WAY: ReadonlySet<ActionState> = new Set(['admitted', 'running', 'failed']);

/**
 * Asks the ledger until `enough` is true of the run, at most `withinMs` (null waits for ever), and returns what it read last.
 * `onRead` sees every reading.
 */
export async function watchRun(
  tx: Tx,
  run: { readonly id: string; readonly key: string | null },
  wait: {
    readonly enough: (report: RunReport) => boolean;
    readonly withinMs: number | null;
    readonly onRead?: (report: RunReport, waitedMs: number) => void;
  },
): Promise<RunReport> {
  const since = performance.now();
  for (;;) {
    const report = await readRun(tx, run.id, run.key);
    const waited = performance.now() - since;
    wait.onRead?.(report, waited);
    if (wait.enough(report) || (wait.withinMs !== null && waited >= wait.withinMs)) return report;
    await delay(waited < QUICK_MS ? 50 : 500);
  }
}

/** A decision takes some 100 ms: ask often at first, then leave the database alone. */
const QUICK_MS = 3_000;
