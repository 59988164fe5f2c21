import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { packageFolder } from '../embedded/project-folder.ts';
import { OnceperError } from '../kernel/error.ts';

/** What a command line printed and how it ended. */
export interface Typed {
  readonly line: string;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a line as a person types it, `npx temporal …` or `npx onceper …`, through the very bins that npx finds. The line is
 * split at blanks; no argument of ours holds one. Throws OnceperError `command_failed` for an exit code not in `expected`.
 */
export async function typed(
  line: string,
  environment: Record<string, string>,
  expected: readonly number[] = [0],
): Promise<Typed> {
  const [npx, name, ...args] = line.split(' ');
  if (npx !== 'npx' || name === undefined) throw new Error(`not a line for people: ${line}`);
  const child = spawn(process.execPath, [join(packageFolder(), `bin/${name}.mjs`), ...args], { env: environment });
  const [stdout, stderr] = [textOf(child.stdout), textOf(child.stderr)];
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  const result = { line, code, stdout: stdout(), stderr: stderr() };
  if (code !== null && expected.includes(code)) return result;
  throw new OnceperError({
    code: 'command_failed',
    message: `${line} ended with ${code}: ${(result.stderr || result.stdout).trim().split('\n').at(-1)}`,
    remedy: 'type it against npm start to look closer',
    at: line,
  });
}

/** What a stream has said until it is asked. */
export function textOf(stream: NodeJS.ReadableStream): () => string {
  let text = '';
  stream.setEncoding('utf8');
  stream.on('data', (part: string) => {
    text += part;
  });
  return () => text;
}
