import { spawn } from 'node:child_process';
import { Socket } from 'node:net';
import type { Child } from './children.ts';

/**
 * Stops a process in its tracks (SIGSTOP): it holds what it holds, hears nothing, and knows nothing of the time that passes.
 * Returns what wakes it up. Should this process end meanwhile, a watcher wakes it, so that it can end too.
 */
export function freeze(child: Child): () => void {
  const watcher = spawn('sh', ['-c', 'read -r _; kill -CONT "$0" 2>/dev/null', String(child.pid)], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  });
  watcher.unref();
  if (watcher.stdin instanceof Socket) watcher.stdin.unref();
  child.signal('SIGSTOP');
  return () => {
    child.signal('SIGCONT');
    watcher.stdin.end('\n');
  };
}
