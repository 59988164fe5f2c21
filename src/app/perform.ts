import type { Command } from 'commander';
import type { Act } from './command.ts';
import { EXIT, type ExitCode } from './exit-codes.ts';
import { databaseFault } from './fault.ts';
import type { Io } from './io.ts';
import { permit } from './permissions.ts';
import { createSession, type Session, type Surroundings } from './session.ts';

/** How a command ended: its exit code, or what it threw. */
export type Ended = { readonly exit: ExitCode } | { readonly thrown: unknown };

/** Performs a command elsewhere instead of here; null where it is one of those that stay here. */
export type Elsewhere = (session: Session, command: Command) => Promise<ExitCode> | null;

/**
 * Performs one command line of a program, for whoever types here or asks the server: both go this way, so that both are told the
 * same. Never throws.
 */
export async function perform(
  createProgram: (act: Act) => Command,
  argv: readonly string[],
  in_: { readonly io: Io; readonly around: Surroundings; readonly elsewhere?: Elsewhere },
): Promise<Ended> {
  let exit: ExitCode = EXIT.done;
  const act: Act =
    <Rest extends readonly unknown[]>(work: (session: Session, ...rest: Rest) => Promise<ExitCode>) =>
    async (...parsed) => {
      // Commander's order: the arguments, the options, the command itself.
      const given = parsed.slice(0, -1) as unknown as Rest;
      const command = parsed.at(-1) as Command;
      const session = createSession(in_.io, in_.around);
      try {
        const asked = in_.elsewhere?.(session, command) ?? null;
        if (asked !== null) {
          exit = await asked;
          return;
        }
        await permit(session, command);
        exit = await work(session, ...given);
      } catch (error) {
        throw databaseFault(error, session);
      }
    };
  try {
    await createProgram(act).parseAsync([...argv], { from: 'user' });
    return { exit };
  } catch (thrown) {
    return { thrown };
  }
}
