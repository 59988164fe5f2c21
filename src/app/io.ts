import type { Registry } from '../jobs/registry.ts';
import { ownEnvironment } from './config.ts';
import { createJobs } from './services.ts';
import { standardStreams } from './streams.ts';
import { shown } from './terminal.ts';

/** The outside of one command: where it writes, what it is told, which jobs it knows. A test hands in its own. */
export interface Io {
  /** Standard output: what was asked for, and nothing else. */
  readonly out: (text: string) => void;
  /** Standard error: progress, warnings, errors. */
  readonly err: (text: string) => void;
  /** Waits until standard output has been taken; what the device refused it with, or null. */
  readonly refusal: () => Promise<Error | null>;
  /** True when a person reads standard output: colours are for people. */
  readonly isTerminal: boolean;
  readonly environment: Readonly<Record<string, string>>;
  readonly createJobs: () => Registry;
}

/** This process's own. */
export function processIo(): Io {
  const { out, err } = standardStreams();
  return {
    out: out.write,
    err: err.write,
    refusal: out.refusal,
    isTerminal: process.stdout.isTTY === true,
    environment: ownEnvironment(),
    createJobs,
  };
}

/** What a command prints, on its way through the terminal's door. */
export function throughDoor(io: Io): Io {
  return { ...io, out: (text) => io.out(shown(text)), err: (text) => io.err(shown(text)) };
}
