import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { startHere, testProject } from './project.ts';

const bin = path.resolve(import.meta.dirname, '../../bin/temporal.mjs');

/** Stands for the CLI where a test is about what reaches it. */
const ECHO = `#!/bin/sh
case "$1" in
--version) echo "temporal version 9.9.9 (Server 9, UI 9)" ;;
wait) trap 'exit 7' INT; echo waiting; while :; do sleep 0.05; done ;;
*) echo "$TEMPORAL_ADDRESS|$TEMPORAL_NAMESPACE|$*"; cat; exit 5 ;;
esac
`;

let dir: string;
let echo: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'onceper-bin-'));
  echo = path.join(dir, 'echo');
  writeFileSync(echo, ECHO);
  chmodSync(echo, 0o755);
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function run(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; input?: string; onOutput?: (pid: number) => void },
): Promise<Ran> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [bin, ...args], {
      cwd: options.cwd ?? dir,
      env: { PATH: '/usr/bin:/bin', HOME: dir, ...options.env },
    });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
      if (child.pid !== undefined) options.onOutput?.(child.pid);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.once('close', (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(options.input ?? '');
  });
}

test('arguments, input, output and exit code pass through, and a given address goes before the running server', async () => {
  const env = { TEMPORAL_CLI: echo, TEMPORAL_ADDRESS: '10.0.0.1:7233', TEMPORAL_NAMESPACE: 'payments' };
  const ran = await run(['schedule', 'trigger', '--schedule-id', 'a b'], { env, input: 'typed\n' });
  expect(ran).toEqual({
    code: 5,
    stdout: '10.0.0.1:7233|payments|schedule trigger --schedule-id a b\ntyped\n',
    stderr: '',
  });
});

test('a signal reaches the CLI, whose exit code is ours', async () => {
  let signalled = false;
  const ran = await run(['wait'], {
    env: { TEMPORAL_CLI: echo },
    onOutput: (pid) => {
      if (!signalled) process.kill(pid, 'SIGINT');
      signalled = true;
    },
  });
  expect(ran.code).toBe(7);
});

test('typed in a sub-folder of a project whose demo or servers run, it talks to them without being told where they are', async (context) => {
  const project = await testProject(context, { databaseUrl: 'postgresql://nobody@127.0.0.1:1/none', started: 'never' });
  const deep = path.join(project.projectDir, 'deep', 'down');
  mkdirSync(deep, { recursive: true });
  const demo = await startHere(context, { ...project, projectDir: path.join(project.projectDir, '.onceper', 'demo') });
  const toDemo = await run(['anything'], { cwd: deep, env: { TEMPORAL_CLI: echo } });
  expect(toDemo.stdout).toBe(`${demo.servers.temporal?.address}|default|anything\n`);
  await demo.stop();

  const { servers } = await startHere(context, project);
  const health = await run(['operator', 'cluster', 'health'], { cwd: deep });
  expect(health).toEqual({ code: 0, stdout: 'SERVING\n', stderr: '' });
  const told = await run(['anything'], { cwd: deep, env: { TEMPORAL_CLI: echo } });
  expect(told.stdout).toBe(`${servers.temporal?.address}|default|anything\n`);
  const elsewhere = await run(['anything'], { cwd: deep, env: { TEMPORAL_CLI: echo, TEMPORAL_PROFILE: 'prod' } });
  expect(elsewhere.stdout).toBe('||anything\n');
});

test('where no CLI can be had it says so in one line, and exits 1', async () => {
  const ran = await run(['--version'], { env: { TEMPORAL_CLI: path.join(dir, 'absent') } });
  expect(ran.code).toBe(1);
  expect(ran.stdout).toBe('');
  expect(ran.stderr).toMatch(/^TEMPORAL_CLI is .*absent, which does not work: [^\n]+\n$/);
});

test('without a server and without variables it is the plain CLI', async () => {
  const ran = await run(['--version'], { env: { TEMPORAL_CLI: inject('temporalCli') } });
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  expect(ran.stdout).toMatch(/^temporal version \d/);
});
