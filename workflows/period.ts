import { ApplicationFailure } from '@temporalio/common';
import { continueAsNew, isCancellation, sleep, workflowInfo } from '@temporalio/workflow';
import type { ClaimOutput } from '../activities/attempt.ts';
import { claim, close, endAttempt } from './options.ts';
import { endOf, type PassEnd } from './pass-end.ts';
import { performAll } from './perform-all.ts';
import { showState } from './search-attributes.ts';
import { startWatcher } from './start-watcher.ts';

/** The run whose key is settled; `pass` only continues a workflow as new. */
export interface PeriodInput {
  readonly run: string;
  readonly pass?: number;
}

export interface PeriodOutput {
  readonly key: string;
  readonly result: unknown;
}

type Granted = Extract<ClaimOutput, { kind: 'granted' }>;

/** What a pass leads to: the key is done, or a further pass after a while, or an end that a person must look at. */
type After =
  | { readonly kind: 'done'; readonly output: PeriodOutput }
  | { readonly kind: 'again'; readonly afterMs: number; readonly pass: number };

/**
 * Carries an admitted run to its document: claim → perform → close, a pass at a time, until the key is done or its budget is
 * spent; then a watcher of the key's effects takes over. It decides nothing: a pass whose grant was lost claims again, and one that finds the key done gives the stored
 * result. Not reaching `done` fails the workflow, so that its ID may be started again.
 */
export async function period(input: PeriodInput): Promise<PeriodOutput> {
  let pass = input.pass ?? 1;
  let unreachable = 0;
  for (;;) {
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof period>({ run: input.run, pass });
    const claimed = await tryClaim(input.run, pass);
    if (claimed === null) {
      unreachable += 1;
      await sleep(Math.min(30_000, 1_000 * 2 ** Math.min(unreachable, 5)));
      pass += 1;
      continue;
    }
    unreachable = 0;
    const after = await follow(claimed, pass);
    if (after.kind === 'done') {
      await startWatcher(after.output.key);
      return after.output;
    }
    if (after.afterMs > 0) await sleep(after.afterMs);
    pass = after.pass;
  }
}

/** Null where the ledger could not be asked: no attempt was granted, or the next claim gives that grant up. */
async function tryClaim(run: string, pass: number): Promise<ClaimOutput | null> {
  try {
    return await claim({ run, execution: workflowInfo().firstExecutionRunId, pass });
  } catch (error) {
    if (isCancellation(error)) throw error;
    const end = endOf(error);
    if (end.permanent)
      throw ApplicationFailure.nonRetryable(end.detail ?? end.code ?? 'claim failed', end.code ?? 'claim');
    return null;
  }
}

async function follow(claimed: ClaimOutput, pass: number): Promise<After> {
  switch (claimed.kind) {
    case 'granted':
      return runPass(claimed, pass);
    case 'done':
      showState('done', `${claimed.key} is done`);
      return { kind: 'done', output: { key: claimed.key, result: claimed.result } };
    case 'busy':
      showState('waiting', `${claimed.key}: another attempt holds the lease until ${claimed.until}`);
      return { kind: 'again', afterMs: Math.max(100, claimed.waitMs), pass: pass + 1 };
    case 'superseded':
      return { kind: 'again', afterMs: 0, pass: claimed.pass + 1 };
    case 'failed':
      return afterEnd(claimed.key, claimed.code, claimed.next, pass);
    case 'refused':
      showState('refused', claimed.reason);
      throw ApplicationFailure.nonRetryable(claimed.reason, claimed.code);
  }
}

async function runPass(grant: Granted, pass: number): Promise<After> {
  const { key, fence, attempt, slices } = grant;
  showState('running', `${key}: attempt ${attempt} under fence ${fence}, ${slices.length} slices to perform`);
  let end: PassEnd | null = await performAll(grant);
  if (end === null) {
    const closed = await tryClose(key, fence);
    if (closed.kind === 'done') {
      showState('done', `${key}: closed by attempt ${attempt} under fence ${fence}`);
      return { kind: 'done', output: { key, result: closed.result } };
    }
    end = closed.end;
  }
  const { outcome, code, detail, slicesBegun } = end;
  const next = await recordEnd({ key, fence, outcome, code, detail, slicesBegun });
  return afterEnd(key, code ?? outcome, next, pass);
}

async function tryClose(
  key: string,
  fence: string,
): Promise<{ kind: 'done'; result: unknown } | { kind: 'not_done'; end: PassEnd }> {
  try {
    const closed = await close({ key, fence });
    if (closed.kind === 'done') return closed;
    const lost = closed.kind === 'lease_lost';
    const outcome = lost ? 'lease_lost' : 'failed';
    return { kind: 'not_done', end: { outcome, code: closed.kind, detail: 'close', slicesBegun: 1, permanent: false } };
  } catch (error) {
    if (isCancellation(error)) throw error;
    return { kind: 'not_done', end: endOf(error) };
  }
}

type EndOutput = Awaited<ReturnType<typeof endAttempt>>;

/** An end that could not be recorded is recorded by the next grant, which closes whatever attempt it finds open. */
async function recordEnd(input: Parameters<typeof endAttempt>[0]): Promise<EndOutput> {
  try {
    return await endAttempt(input);
  } catch (error) {
    if (isCancellation(error)) throw error;
    return { kind: 'moved_on' };
  }
}

function afterEnd(key: string, why: string, next: EndOutput, pass: number): After {
  switch (next.kind) {
    case 'exhausted':
      showState('exhausted', `${key}: ${next.spent} attempts in a row finished no slice, the last with ${why}`);
      throw ApplicationFailure.nonRetryable(
        `${key}: the budget of attempts is spent, the last ended with ${why}`,
        'exhausted',
      );
    case 'again':
      showState('failed', `${key}: the last attempt ended with ${why}; the next follows`);
      return { kind: 'again', afterMs: next.afterMs, pass: pass + 1 };
    case 'moved_on':
      return { kind: 'again', afterMs: 1_000, pass: pass + 1 };
  }
}
