import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll } from 'vitest';
import { main } from '../../src/app/cli.ts';
import type { Io } from '../../src/app/io.ts';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry } from '../../src/jobs/registry.ts';

/** What a command line printed and how it ended. */
export interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A port on which nobody listens: a connection to it is refused at once. */
export const NOBODY = '127.0.0.1:1';

/** A home without servers, so that a command finds only what the test's variables name. */
export const emptyHome = mkdtempSync(path.join(tmpdir(), 'onceper-home-'));
afterAll(() => rmSync(emptyHome, { recursive: true, force: true }));

/** Runs a command line in this process; `given` are the only variables it sees. */
export async function typed(
  line: readonly string[],
  given: Readonly<Record<string, string>> = {},
  options: { readonly jobs?: readonly Job[]; readonly isTerminal?: boolean } = {},
): Promise<Printed> {
  const out: string[] = [];
  const err: string[] = [];
  const io: Io = {
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    isTerminal: options.isTerminal ?? false,
    environment: {
      ONCEPER_HOME: emptyHome,
      ONCEPER_LOG_LEVEL: 'silent',
      ONCEPER_ACTOR: 'tester',
      // Whoever runs the tests may have a profile of their own.
      TEMPORAL_CONFIG_FILE: path.join(emptyHome, 'no-profile.toml'),
      ...given,
    },
    createJobs: () => createRegistry(options.jobs ?? []),
  };
  const code = await main(line, io);
  return { code, out: out.join(''), err: err.join('') };
}

/** The one JSON document that a command printed; throws where there is none or more than one line. */
export function documentOf<T>(printed: Printed): T {
  const lines = printed.out.trimEnd().split('\n');
  if (lines.length !== 1) throw new Error(`${lines.length} lines on standard output: ${printed.out}`);
  return JSON.parse(printed.out) as T;
}

/** The shape of an error under --json. */
export interface ErrorDocument {
  readonly error: {
    readonly code: string;
    readonly message: string;
    readonly remedy: string;
    readonly at: string | null;
  };
}
