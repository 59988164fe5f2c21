import type { Log } from '../observability/log.ts';

/**
 * Aborts the returned signal on the first SIGTERM or SIGINT and logs the drain; a second one changes nothing, since what is
 * in flight must end. A forked child is sent SIGTERM by its own entry, bin/onceper.mjs, when its parent is gone.
 */
export function drainOnSignal(log: Log, graceMs: number): AbortSignal {
  const controller = new AbortController();
  const begin = (signal: string) => {
    if (controller.signal.aborted) return;
    log({ event: 'draining', signal, graceMs });
    controller.abort();
  };
  process.on('SIGTERM', () => begin('SIGTERM'));
  process.on('SIGINT', () => begin('SIGINT'));
  return controller.signal;
}
