import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import path from 'node:path';
import { afterAll } from 'vitest';
import { emptyHome } from './command-line.ts';

/** A command in a process of its own, as `npx onceper` starts it. */
export interface CommandProcess {
  readonly process: ChildProcessWithoutNullStreams;
  readonly out: () => string;
  readonly err: () => string;
  /** Its exit code, once it has ended. */
  readonly ended: Promise<number | null>;
}

const children: ChildProcessWithoutNullStreams[] = [];
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});

/** Starts a command line; it sees `given` and no other variable, and is killed after the tests of its file. */
export function startCommand(
  line: readonly string[],
  given: Readonly<Record<string, string>> = {},
  nodeArguments: readonly string[] = [],
): CommandProcess {
  const file = path.resolve(import.meta.dirname, '../../bin/onceper.mjs');
  const child = spawn(process.execPath, [...nodeArguments, file, ...line], {
    env: { PATH: process.env['PATH'], ONCEPER_HOME: emptyHome, ...given },
  });
  const text = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text.out += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (text.err += part));
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  children.push(child);
  return { process: child, out: () => text.out, err: () => text.err, ended };
}
