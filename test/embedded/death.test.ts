import { spawn } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { identityOf, isAlive } from '../../src/embedded/process-identity.ts';
import { down, type RunningServers, runningServers, upDetached } from '../../src/embedded/servers.ts';
import { waitFor } from '../support/wait.ts';
import { childrenOf, processesOf, startHere, testProject } from './project.ts';

/** Kills the supervisor and, while it is stopped, the guards that would end the servers: the servers are left alone. */
function orphan(servers: RunningServers): void {
  process.kill(servers.supervisor.pid, 'SIGSTOP');
  for (const pid of guardsOf(servers)) process.kill(pid, 'SIGKILL');
  process.kill(servers.supervisor.pid, 'SIGKILL');
}

/** The processes between the supervisor and its servers, those that would signal a server first. */
function guardsOf(servers: RunningServers): number[] {
  const own = [servers.postgres?.pid, servers.temporal?.pid];
  const guards = childrenOf(servers.supervisor.pid).filter((pid) =>
    childrenOf(pid).some((child) => own.includes(child)),
  );
  return [...guards.flatMap((guard) => childrenOf(guard).filter((child) => !own.includes(child))), ...guards];
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

  test('a server whose guard was killed is not taken for gone: its supervisor ends it with the other', async (context) => {
    const it = await testProject(context);
    const { servers } = await upDetached(it);
    for (const pid of guardsOf({ ...servers, temporal: null })) process.kill(pid, 'SIGKILL');
    await waitFor(() => !isAlive(servers.supervisor), { what: 'the supervisor to end', timeoutMs: 20_000 });
    expect(processesOf(it.projectDir)).toEqual([]);
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
