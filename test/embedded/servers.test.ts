import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { describe, expect, inject, test } from 'vitest';
import { canEnter } from '../../src/embedded/database-user.ts';
import { isPortTaken } from '../../src/embedded/ports.ts';
import { down, runningServers, up, upDetached } from '../../src/embedded/servers.ts';
import { createTestDatabase } from '../support/database.ts';
import { processesOf, startHere, testProject } from './project.ts';

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

async function onTemporal<T>(address: string, work: (client: Client) => Promise<T>): Promise<T> {
  const connection = await Connection.connect({ address });
  try {
    return await work(new Client({ connection }));
  } finally {
    await connection.close();
  }
}

test('what both servers were given outlives down and the next up, which is ready in under 6 s', async (context) => {
  const it = await testProject(context, { started: 'never' });
  const first = await upDetached(it);
  expect(first.kind).toBe('started');
  expect(first.servers.temporal?.uiUrl).toBe(`http://127.0.0.1:${it.ports.ui}`);
  await query(first.addresses.databaseUrl, 'create table kept as select 7 as seven');
  await onTemporal(first.addresses.temporalAddress, (client) =>
    client.workflow.start('tick', { taskQueue: 'nobody', workflowId: 'settlement:2026-09' }),
  );
  const ui = await fetch(`${first.servers.temporal?.uiUrl}/healthz`);
  expect(ui.status).toBe(200);

  expect(await down(it)).toEqual({ kind: 'stopped', servers: ['postgres', 'temporal'] });
  expect(processesOf(it.projectDir)).toEqual([]);
  expect(await down(it)).toEqual({ kind: 'not_running' });

  const begun = performance.now();
  const second = await startHere(context, it);
  expect(performance.now() - begun).toBeLessThan(6_000);
  expect(await query(second.addresses.databaseUrl, 'select seven from kept')).toEqual([{ seven: 7 }]);
  const found = await onTemporal(second.addresses.temporalAddress, (client) =>
    client.workflow.getHandle('settlement:2026-09').describe(),
  );
  expect(found.status.name).toBe('RUNNING');
});

// Most of their time these tests wait for servers, so they wait together.
describe.concurrent('up and down', () => {
  test('of two starts at once one starts the servers and the other reports the same ones, as every later start does', async (context) => {
    const it = await testProject(context, { temporalAddress: inject('temporalAddress') });
    const both = await Promise.all([upDetached(it), upDetached(it)]);
    expect(both.map((one) => one.kind).toSorted()).toEqual(['already_running', 'started']);
    expect(both[0]?.servers).toEqual(both[1]?.servers);
    const third = await up(it);
    expect(third.kind).toBe('already_running');
    expect(third.servers).toEqual(both[0]?.servers);
    expect(runningServers(it.projectDir)).toEqual(third.servers);
  });

  test('down stops the servers of its own project and nobody else’s', async (context) => {
    const mine = await testProject(context, { temporalAddress: inject('temporalAddress') });
    const other = await testProject(context, { temporalAddress: inject('temporalAddress') });
    await Promise.all([upDetached(mine), startHere(context, other)]);
    await down(mine);
    const left = runningServers(other.projectDir);
    expect(left).not.toBeNull();
    expect(await query(left?.postgres?.url ?? '', 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  test('what up keeps is closed to every other user, also what an earlier release left open', async (context) => {
    const it = await testProject(context, {});
    const folder = path.join(it.projectDir, '.onceper');
    chmodSync(folder, 0o755);
    writeFileSync(path.join(folder, 'temporal.log'), '', { mode: 0o644 });
    const { servers } = await startHere(context, it);
    const isRoot = userInfo().uid === 0;
    for (const name of ['.', ...readdirSync(folder, { recursive: true, encoding: 'utf8' })]) {
      const { mode } = lstatSync(path.join(folder, name));
      // Where root starts it, the database's user passes through to its data.
      const passed = name === '.' && isRoot ? 0o710 : 0o700;
      expect([name, mode & 0o777 & ~(passed | 0o600)]).toEqual([name, 0]);
    }
    expect(readFileSync(path.join(folder, 'servers.json'), 'utf8')).toContain(servers.postgres?.url);
    if (isRoot) expect(canEnter({ uid: 65_534, gid: 65_534 }, folder)).toBe(false);
  });

  test('a port where somebody listens gives way to the next free one, and the start says so', async (context) => {
    const said: string[] = [];
    const it = await testProject(context, {
      temporalAddress: inject('temporalAddress'),
      onProgress: (sentence) => said.push(sentence),
    });
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen(it.ports.postgres, '127.0.0.1', resolve));
    try {
      const { servers, stop } = await startHere(context, it);
      expect(servers.postgres?.port).toBeGreaterThan(it.ports.postgres);
      expect(said).toContain(`port ${it.ports.postgres} is taken; PostgreSQL listens on ${servers.postgres?.port}`);
      expect(servers.postgres?.url).toContain(`:${servers.postgres?.port}/`);
      await stop();
      expect(await isPortTaken(it.ports.postgres)).toBe(true);
    } finally {
      stranger.close();
    }
  });

  test('a server that a variable supplies is neither started nor stopped, nor is its password written down', async (context) => {
    const database = await createTestDatabase();
    const withPassword = new URL(database.url);
    withPassword.password = 'secret-word';
    const it = await testProject(context, {
      databaseUrl: withPassword.href,
      temporalAddress: inject('temporalAddress'),
    });
    const result = await startHere(context, it);
    expect(result.addresses).toEqual({ databaseUrl: withPassword.href, temporalAddress: inject('temporalAddress') });
    expect(result.servers).toMatchObject({ postgres: null, temporal: null });
    expect(readFileSync(path.join(it.projectDir, '.onceper', 'servers.json'), 'utf8')).not.toContain('secret-word');
    await result.stop();
    expect(await query(database.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await database.drop();
  });

  test('a start that fails says why, stops what it had started, and leaves the way free for the next', async (context) => {
    const it = await testProject(context, {
      temporalCli: { explicit: '/nowhere/temporal', path: '', cacheDir: '/nowhere' },
    });
    await expect(up(it)).rejects.toMatchObject({ code: 'temporal_cli_unusable', at: 'TEMPORAL_CLI' });
    expect(processesOf(it.projectDir)).toEqual([]);
    expect(existsSync(path.join(it.projectDir, '.onceper', 'servers.json'))).toBe(false);
    await startHere(context, { ...it, temporalAddress: inject('temporalAddress') });
  });

  test('a folder that can’t be made is named, with what to do', async (context) => {
    const it = await testProject(context, { temporalAddress: inject('temporalAddress') });
    writeFileSync(path.join(it.projectDir, 'file'), '');
    const projectDir = path.join(it.projectDir, 'file');
    for (const start of [up, upDetached]) {
      await expect(start({ ...it, projectDir })).rejects.toMatchObject({
        code: 'storage_refused',
        at: path.join(projectDir, '.onceper'),
        remedy: 'name a project folder that can be made and written',
      });
    }
  });
});
