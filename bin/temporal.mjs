#!/usr/bin/env node
/*
 * `npx temporal …`: the Temporal CLI that is in use, against the server that runs. Arguments, input, output, exit code and
 * signals pass through. Where no server of the project runs, the CLI's own defaults and variables hold.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { constants, devNull } from 'node:os';
import path from 'node:path';

const root = path.dirname(import.meta.dirname);
const server = runningTemporal();

let file;
try {
  // The running server's own file, unless another was asked for: looking for one means loading the finder.
  const known = process.env.TEMPORAL_CLI ? undefined : server?.cli;
  file = known !== undefined && existsSync(known) ? known : await find();
} catch (error) {
  process.stderr.write(`${error.message}${error.remedy ? `; ${error.remedy}` : ''}\n`);
  process.exit(1);
}

const running = { cli: null };
// Before the CLI is started: between that and a later handler a signal would end only us.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // Ctrl-C at a terminal has reached the CLI by itself; a second one would cut its clean-up short.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) running.cli?.kill(signal);
  });
}
running.cli = spawn(file, process.argv.slice(2), { stdio: 'inherit', env: environment() });
running.cli.on('error', (error) => {
  process.stderr.write(`could not run ${file}: ${error.message}\n`);
  process.exitCode = 1;
});
running.cli.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});

/** The variables of the server that runs, for a CLI that was pointed nowhere else. */
function environment() {
  const env = process.env;
  if (server === undefined || env.TEMPORAL_ADDRESS || env.TEMPORAL_PROFILE || env.TEMPORAL_CONFIG_FILE) return env;
  return {
    ...env,
    TEMPORAL_ADDRESS: server.address,
    TEMPORAL_NAMESPACE: env.TEMPORAL_NAMESPACE || server.namespace,
    // The default profile of a person's own file may carry the keys of some other server.
    TEMPORAL_CONFIG_FILE: devNull,
  };
}

/**
 * What `up` noted about its Temporal: where ONCEPER_HOME says, else upwards from here, else beside this file; in each place
 * the servers of `up` come before those of a demo.
 */
function runningTemporal() {
  const home = process.env.ONCEPER_HOME;
  const places = home ? [home] : [...upwards(process.cwd()), root];
  for (const folder of places.flatMap((place) => [place, path.join(place, '.onceper', 'demo')])) {
    try {
      const state = JSON.parse(readFileSync(path.join(folder, '.onceper', 'servers.json'), 'utf8'));
      if (state.ready && state.temporal !== null && isAlive(state.supervisor.pid)) return state.temporal;
    } catch {
      // No servers were started from this folder.
    }
  }
  return undefined;
}

function* upwards(from) {
  for (let folder = from; ; folder = path.dirname(folder)) {
    yield folder;
    if (folder === path.dirname(folder)) return;
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

async function find() {
  const { cacheFolder, findTemporalCli } = await import(await finder());
  const found = await findTemporalCli({
    explicit: process.env.TEMPORAL_CLI || null,
    path: process.env.PATH ?? '',
    cacheDir: cacheFolder(process.env.XDG_CACHE_HOME || null),
    onProgress: (sentence) => process.stderr.write(`${sentence}\n`),
  });
  return found.file;
}

async function finder() {
  const built = path.join(root, 'dist', 'src', 'embedded', 'temporal-cli.js');
  if (existsSync(built)) return built;
  const { register } = await import('tsx/esm/api');
  register({ tsconfig: path.join(root, 'tsconfig.json') });
  return path.join(root, 'src', 'embedded', 'temporal-cli.ts');
}
