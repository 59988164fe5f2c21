import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, inject, type TestContext } from 'vitest';
import { databaseUser } from '../../src/embedded/database-user.ts';
import { freePort } from '../../src/embedded/ports.ts';
import { postgresBinaries } from '../../src/embedded/postgres-binaries.ts';
import { dataHome, initialiseData } from '../../src/embedded/postgres-data.ts';
import { securePassword } from '../../src/embedded/postgres-password.ts';
import { down, type StartOptions, type Up, up } from '../../src/embedded/servers.ts';

/** A project whose servers use free ports, so that it can run beside anything. */
export interface TestProject extends StartOptions {
  readonly ports: { readonly postgres: number; readonly temporal: number; readonly ui: number };
}

/** What a test gets from vitest; beside other tests its own must be used, the imported ones belong to whichever runs. */
type Finishing = Pick<TestContext, 'onTestFinished'>;

/** A data directory as a first start makes it: copying it costs a tenth of an initdb. */
let template: string | null = null;
afterAll(() => {
  if (template !== null) rmSync(template, { recursive: true, force: true });
  template = null;
});

/** Makes a throw-away project; when the test has finished, its servers are stopped and it is deleted. */
export async function testProject(
  { onTestFinished }: Finishing,
  given: Partial<StartOptions> & { readonly started?: 'before' | 'never' } = {},
): Promise<TestProject> {
  const { started = 'before', ...options } = given;
  const projectDir = throwAwayFolder('onceper-project-');
  onTestFinished(async () => {
    try {
      await down({ projectDir });
    } finally {
      // Whatever a failed test left of it, so that nothing of a run outlives the run.
      for (const pid of processesOf(projectDir)) process.kill(pid, 'SIGKILL');
      rmSync(projectDir, { recursive: true, force: true });
    }
  });
  if (started === 'before') {
    template ??= makeTemplate();
    execFileSync('cp', ['-a', template, path.join(projectDir, '.onceper')]);
  }
  return {
    projectDir,
    databaseUrl: null,
    temporalAddress: null,
    temporalCli: { explicit: inject('temporalCli'), path: '', cacheDir: path.join(projectDir, 'cache') },
    ports: { postgres: await freePort(), temporal: await freePort(), ui: await freePort() },
    ...options,
  };
}

function makeTemplate(): string {
  const folder = throwAwayFolder('onceper-template-');
  const user = databaseUser();
  const dir = path.join(folder, 'postgres');
  const binaries = postgresBinaries(user);
  const data = initialiseData(dataHome(dir, user), binaries, { user, durable: false });
  securePassword(dir, data, binaries, user);
  return folder;
}

/** As in a checkout: the database's user can pass through, when we are root. */
function throwAwayFolder(prefix: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), prefix));
  chmodSync(folder, 0o755);
  return folder;
}

/** Starts the servers with this process as their supervisor, which is quicker than one of their own. */
export async function startHere(
  { onTestFinished }: Finishing,
  options: StartOptions,
): Promise<Extract<Up, { kind: 'started' }>> {
  const result = await up(options);
  if (result.kind !== 'started') throw new Error(`they were ${result.kind}`);
  onTestFinished(result.stop);
  return result;
}

/** The pids of processes that name this folder on their command line, as every server of a project does. */
export function processesOf(projectDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => commandLine(pid).some((argument) => argument.includes(projectDir)));
}

/** The pids of the processes that this process started and that still run. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(Number(name)) === pid)
    .map(Number);
}

function commandLine(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null;
  }
}
