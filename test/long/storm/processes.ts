import { execFileSync } from 'node:child_process';

/** The processes below a process, itself first, by the table of the system. */
export function familyOf(pid: number): readonly number[] {
  const table = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  const parents = table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const family = [pid];
  for (const member of family) {
    for (const [child = 0, parent] of parents) if (parent === member) family.push(child);
  }
  return family;
}

/** Sends a signal to each of them; one that has gone meanwhile needs none. Returns how many were there. */
export function signalAll(pids: readonly number[], signal: NodeJS.Signals): number {
  let reached = 0;
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
      reached += 1;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
    }
  }
  return reached;
}
