import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SignJWT } from 'jose';
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

const { privateKey } = generateKeyPairSync('ed25519');
const keyFile = path.join(emptyHome, 'token.pem');
writeFileSync(keyFile, privateKey.export({ format: 'pem', type: 'pkcs8' }));

/** The variables of a person `user:<subject>` with some roles, as an identity provider would have signed them. */
export async function as(subject: string, ...roles: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const token = await new SignJWT({ roles })
    .setProtectedHeader({ alg: 'EdDSA' })
    .setSubject(subject)
    .setAudience('onceper')
    .setExpirationTime('1h')
    .sign(privateKey);
  return { ONCEPER_TOKEN: token, ONCEPER_TOKEN_KEY: keyFile };
}

/** Runs a command line in this process, as `user:tester` in every role; `given` are the only other variables it sees. */
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
    refusal: () => Promise.resolve(null),
    isTerminal: options.isTerminal ?? false,
    environment: {
      ONCEPER_HOME: emptyHome,
      ONCEPER_LOG_LEVEL: 'silent',
      ...(await as('tester', 'viewer', 'operator', 'approver')),
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
