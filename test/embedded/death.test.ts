import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { identityOf, isAlive } from '../../src/embedded/process-identity.ts';
import { down, type RunningServers, runningServers, upDetached } from '../../src/embedded/servers.ts';
import { waitFor } from '../support/wait.ts';
import { childrenOf, processesOf, startHere, testProject } from './project.ts';

/** Kills the supervisor and, before it, the guards that would end the servers, so that the servers are left alone. */
function orphan(servers: RunningServers): void {
  const own = [servers.postgres?.pid, servers.temporal?.pid];
  const guards = childrenOf(servers.supervisor.pid).filter((pid) =>
    childrenOf(pid).some((child) => own.includes(child)),
  );
  const watchers = guards.flatMap((guard) => childrenOf(guard).filter((child) => !own.includes(child)));
  for (const pid of [...watchers, ...guards, servers.supervisor.pid]) process.kill(pid, 'SIGKILL');
}

// Most of their time these tests wait for servers, so they wait together.
describe.concurrent('whoever dies', () => {
  test('both servers end within seconds of a supervisor that was killed with SIGKILL, and the next up starts anew', async (context) => {
    const it = await testProject(context);
    const { servers } = await upDetached(it);
    process.kill(servers.supervisor.pid, 'SIGKILL');
    await waitFor(() => processesOf(it.projectDir).length === 0, { what: 'the servers to end', timeoutMs: 5_000 });
    expect(runningServers(it.projectDir)).toBeNull();
    await startHere(context, it);
  });

  test('servers that outlived their supervisor and their guards are ended by the next down', async (context) => {
    const it = await testProject(context);
    const { servers } = await upDetached(it);
    orphan(servers);
    await waitFor(() => !isAlive(servers.supervisor), { what: 'the supervisor to go' });
    expect(processesOf(it.projectDir)).toEqual(expect.arrayContaining([servers.postgres?.pid, servers.temporal?.pid]));
    const stopped = await down(it);
    expect(stopped.kind === 'stopped' && stopped.servers.toSorted()).toEqual(['postgres', 'temporal']);
    expect(processesOf(it.projectDir)).toEqual([]);
  });

  test('a PostgreSQL that outlived everything, the state file too, is recognised by its data and ended by the next up', async (context) => {
    const it = await testProject(context, { temporalAddress: inject('temporalAddress') });
    const { servers } = await upDetached(it);
    orphan(servers);
    await waitFor(() => !isAlive(servers.supervisor), { what: 'the supervisor to go' });
    writeFileSync(path.join(it.projectDir, '.onceper', 'servers.json'), '{ torn');
    const next = await startHere(context, it);
    expect(next.servers.postgres?.pid).not.toBe(servers.postgres?.pid);
    expect(processesOf(it.projectDir)).not.toContain(servers.postgres?.pid);
  });

  test('a process that got the pid of a server that had ended is left alone', async (context) => {
    const it = await testProject(context, { temporalAddress: inject('temporalAddress') });
    const { servers, stop } = await startHere(context, it);
    const stateFile = path.join(it.projectDir, '.onceper', 'servers.json');
    const state: unknown = JSON.parse(readFileSync(stateFile, 'utf8'));
    await stop();
    const innocent = spawn('sleep', ['600'], { stdio: 'ignore' });
    const pid = innocent.pid ?? 0;
    try {
      const recycled = JSON.stringify(state).replaceAll(`"pid":${servers.postgres?.pid}`, `"pid":${pid}`);
      expect(recycled).toContain(`"pid":${pid}`);
      writeFileSync(stateFile, recycled);
      expect(await down(it)).toEqual({ kind: 'not_running' });
      expect(identityOf(pid)).not.toBeNull();
    } finally {
      innocent.kill('SIGKILL');
    }
  });

  test('a server that ends by itself is reported to its supervisor, which then stops the rest', async (context) => {
    const it = await testProject(context);
    const result = await startHere(context, it);
    process.kill(result.servers.postgres?.pid ?? 0, 'SIGKILL');
    await expect(result.ended).resolves.toMatchObject({ server: 'postgres', code: 137 });
    await result.stop();
    expect(processesOf(it.projectDir)).toEqual([]);
    expect(runningServers(it.projectDir)).toBeNull();
  });

  test('servers whose project was deleted under them stop by themselves', async (context) => {
    const it = await testProject(context, { temporalAddress: inject('temporalAddress') });
    const { servers } = await upDetached(it);
    rmSync(it.projectDir, { recursive: true, force: true });
    await waitFor(() => !isAlive(servers.supervisor), { what: 'the supervisor to end' });
    expect(processesOf(it.projectDir)).toEqual([]);
  });
});
