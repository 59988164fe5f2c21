import { existsSync, realpathSync, rmSync } from 'node:fs';
import { OnceperError } from '../kernel/error.ts';
import { down } from './down.ts';
import { lockHolder } from './project-lock.ts';
import { onceperFolder, postgresFolder } from './server-state.ts';

/**
 * Removes a project's servers' data for good, wherever they lie, with what an earlier supervisor left running. Throws
 * OnceperError `servers_running` while a supervisor lives: nobody's running servers are pulled from under them.
 */
export async function removeServers(projectDir: string): Promise<void> {
  // The lock, not the state: servers that are still starting have a supervisor too.
  const supervisor = lockHolder(projectDir);
  if (supervisor !== null) {
    throw new OnceperError({
      code: 'servers_running',
      message: `the servers of ${projectDir} run already, supervised by process ${supervisor.pid}`,
      remedy: 'end that process first (Ctrl-C where it runs)',
      at: String(supervisor.pid),
    });
  }
  await down({ projectDir });
  const data = postgresFolder(projectDir);
  if (existsSync(data)) rmSync(realpathSync(data), { recursive: true, force: true });
  rmSync(onceperFolder(projectDir), { recursive: true, force: true });
}
