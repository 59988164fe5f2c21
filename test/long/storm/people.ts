import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { textOf } from '../../../src/drills/typed.ts';

/** How a typed line ended; `json` is what it printed, null where that is no JSON. */
export interface Typed {
  readonly code: number | null;
  readonly json: unknown;
  readonly text: string;
}

/** The people of the storm: each line is typed as a process of its own, by somebody, and counted. */
export interface People {
  /** Types `npx onceper ARGS --json` as this person; who takes longer is interrupted, which a person may do at any time. */
  type(person: string, args: readonly string[], timeoutMs?: number): Promise<Typed>;
  /** How often each command was typed. */
  readonly typed: ReadonlyMap<string, number>;
}

/** People with the environment of the installation; `record` is told of every line. */
export function gatherPeople(
  root: string,
  environment: () => Readonly<Record<string, string>>,
  record: (line: object) => void,
): People {
  const typed = new Map<string, number>();
  return {
    typed,
    async type(person, args, timeoutMs = 30_000) {
      const name = nameOf(args);
      typed.set(name, (typed.get(name) ?? 0) + 1);
      const env = { ...environment(), ONCEPER_ACTOR: person };
      const limit = { timeout: timeoutMs, killSignal: 'SIGKILL' } as const;
      const child = spawn(process.execPath, [join(root, 'bin/onceper.mjs'), ...args, '--json'], { env, ...limit });
      const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
      const last = stderr().trim().split('\n').at(-1) ?? '';
      record({ at: new Date().toISOString(), person, line: args.join(' '), code, last });
      return { code, json: parsed(stdout()), text: last };
    },
  };
}

/** The words of a line before its options and names, as people call a command. */
function nameOf(args: readonly string[]): string {
  const [first = '', second = ''] = args;
  if (args.includes('--reconcile-rewind')) return 'doctor --reconcile-rewind';
  if (args.includes('--release')) return 'run --release';
  return ['approvals', 'backfill', 'hold', 'outbox', 'schedule'].includes(first) ? `${first} ${second}` : first;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What a request is approved by. */
export interface Request {
  readonly id: string;
  readonly digest: string;
}

/** The request that a typed line printed, or null where it asked for none. */
export function requestOf({ json }: Typed): Request | null {
  if (typeof json !== 'object' || json === null || !('approval' in json)) return null;
  const { approval } = json;
  if (typeof approval !== 'object' || approval === null || !('id' in approval) || !('digest' in approval)) return null;
  return { id: String(approval.id), digest: String(approval.digest) };
}

/** Asks as one person and approves as another; how the approval ended, or null where nothing was asked for. */
export async function askAndApprove(people: People, args: readonly string[]): Promise<Typed | null> {
  const request = requestOf(await people.type('alice', args));
  if (request === null) return null;
  return people.type('bob', ['approvals', 'approve', request.id, '--digest', request.digest]);
}
