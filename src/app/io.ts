import type { Registry } from '../jobs/registry.ts';
import { ownEnvironment } from './config.ts';
import { createJobs } from './services.ts';

/** The outside of one command: where it writes, what it is told, which jobs it knows. A test hands in its own. */
export interface Io {
  /** Standard output: what was asked for, and nothing else. */
  readonly out: (text: string) => void;
  /** Standard error: progress, warnings, errors. */
  readonly err: (text: string) => void;
  /** True when a person reads standard output: colours are for people. */
  readonly isTerminal: boolean;
  readonly environment: Readonly<Record<string, string>>;
  readonly createJobs: () => Registry;
}

/** This process's own. A reader that has had enough (`| head`) ends the command quietly, as it ends any other. */
export function processIo(): Io {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    isTerminal: process.stdout.isTTY === true,
    environment: ownEnvironment(),
    createJobs,
  };
}
