import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { OnceperError } from '../kernel/error.ts';
import type { Log } from '../observability/log.ts';
import type { Config } from './config.ts';
import { drainOnSignal } from './drain.ts';
import { createProcessLog } from './services.ts';

/** What a process of ours has from its first step to its last. */
export interface Life {
  readonly log: Log;
  /** Aborted by the first SIGTERM or SIGINT. */
  readonly draining: AbortSignal;
  /** Waits for one step of the start, named by what it waits for. Throws OnceperError `start_timed_out`, and ends the start of a process that drains. */
  readonly start: <T>(step: string, work: () => Promise<T>) => Promise<T>;
  /** Has something closed at the end, however it comes; what was opened last is closed first. */
  readonly atEnd: (what: string, close: () => Promise<unknown> | undefined) => void;
}

/** How long all that is closed at the end may take together, after the work and where it came to none; then the process ends all the same. */
const CLOSE_WITHIN_MS = { worked: 10_000, failed: 1_000 };

/**
 * Runs one process until it ends: a start in steps that are over within ONCEPER_START_TIMEOUT together, the work, and the end.
 * A server that takes a connection and never answers stops no process from ending: the start names what it waited for, and a
 * SIGTERM ends it at once. An error of closing never stands before the error that ended the work. Null where it was drained
 * before its start was over.
 */
export async function runProcess<T>(
  config: Config,
  name: 'worker' | 'relay' | 'webhooks' | 'server',
  run: (life: Life) => Promise<T>,
): Promise<T | null> {
  const log = createProcessLog(config, name);
  const draining = drainOnSignal(log, config.drainGraceMs);
  const endings: Ending[] = [];
  let code = 1;
  let closeWithinMs = CLOSE_WITHIN_MS.failed;
  try {
    const result = await run({
      log,
      draining,
      start: startOf(name, config.startTimeoutMs, draining),
      atEnd: (what, close) => endings.unshift({ what, close }),
    });
    code = 0;
    closeWithinMs = CLOSE_WITHIN_MS.worked;
    return result;
  } catch (error) {
    if (!(error instanceof DrainedInStart)) throw error;
    code = 0;
    return null;
  } finally {
    await end(endings, log, closeWithinMs);
    log({ event: 'stopped', code });
  }
}

class DrainedInStart extends Error {}

function startOf(name: string, withinMs: number, draining: AbortSignal): Life['start'] {
  const until = Date.now() + withinMs;
  return async (step, work) => {
    if (draining.aborted) throw new DrainedInStart();
    const over = new AbortController();
    const { signal } = over;
    try {
      const first = await Promise.race([
        work().then((value) => ({ kind: 'done' as const, value })),
        delay(Math.max(0, until - Date.now()), { kind: 'late' as const }, { signal }),
        once(draining, 'abort', { signal }).then(() => ({ kind: 'drained' as const })),
      ]);
      if (first.kind === 'done') return first.value;
      if (first.kind === 'drained') throw new DrainedInStart();
    } finally {
      over.abort();
    }
    throw new OnceperError({
      code: 'start_timed_out',
      message: `the start of the ${name} was not over after ${withinMs / 1000} s: it waited for ${step}`,
      remedy: 'see why it does not answer and start again; ONCEPER_START_TIMEOUT gives it longer',
      at: step,
    });
  };
}

interface Ending {
  readonly what: string;
  readonly close: () => Promise<unknown> | undefined;
}

/** One by one, since what was opened last may need what was opened first. */
async function end(endings: readonly Ending[], log: Log, withinMs: number): Promise<void> {
  const over = new AbortController();
  const late = delay(withinMs, `not closed after ${withinMs / 1000} s`, { signal: over.signal });
  try {
    for (const { what, close } of endings) {
      const closed = Promise.resolve()
        .then(close)
        .then(
          () => null,
          (error: unknown) => (error instanceof Error ? error.message : String(error)),
        );
      const message = await Promise.race([closed, late]);
      if (message !== null) log({ event: 'close_failed', what, message });
    }
  } finally {
    late.catch(() => undefined);
    over.abort();
  }
}
