#!/usr/bin/env node
/* `npx onceper …`: the build where there is one, else the sources through tsx. */
import { existsSync } from 'node:fs';
import path from 'node:path';

const root = path.dirname(import.meta.dirname);
const built = path.join(root, 'dist', 'src', 'app', 'cli.js');

// A forked child drains when its parent is gone: nothing may outlive who started it. Here and not in the sources, because only
// the entry knows that the channel is its own; unref, since listening must not keep a process alive that has nothing to do.
if (process.connected) {
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.channel?.unref();
}

async function entry() {
  if (existsSync(built)) return import(built);
  const { register } = await import('tsx/esm/api');
  // The compiler options are this checkout's, not those of the folder the command is typed in.
  register({ tsconfig: path.join(root, 'tsconfig.json') });
  return import(path.join(root, 'src', 'app', 'cli.ts'));
}

const { main } = await entry();
const code = await main(process.argv.slice(2));
if (typeof code === 'number') process.exitCode = code;
// All is said and done: a server that took a connection and never answers must not keep the process that asked it.
setTimeout(() => process.exit(), 2_000).unref();
