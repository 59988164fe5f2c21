import type { Log } from '../observability/log.ts';

/**
 * Aborts the returned signal on the first SIGTERM or SIGINT and logs the drain; a second one changes nothing, since what is
 * in flight must end. A child made by fork drains too when its parent is gone: nothing may outlive who started it.
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
  if (process.connected) {
    process.on('disconnect', () => begin('parent gone'));
    // Listening must not keep a process alive that has nothing else to do.
    process.channel?.unref();
  }
  return controller.signal;
}
