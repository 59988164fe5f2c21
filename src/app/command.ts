import type { Command } from 'commander';
import type { ExitCode } from './exit-codes.ts';
import type { Session } from './session.ts';

/**
 * Makes commander's action of a command's work: a session, the arguments, the options. Its exit code becomes the process's;
 * what it throws is reported once, in one place.
 */
export type Act = <Rest extends readonly unknown[]>(
  work: (session: Session, ...rest: Rest) => Promise<ExitCode>,
) => (...parsed: unknown[]) => Promise<void>;

/** Adds a noun and its verbs to the program. */
export type AddCommand = (program: Command, act: Act) => void;

/** A command with what all of them share: `--json`, and help that ends with an example. */
export function command(
  parent: Command,
  syntax: string,
  about: { readonly summary: string; readonly example: string },
): Command {
  return parent
    .command(syntax)
    .description(about.summary)
    .option('--json', 'print one JSON document on standard output')
    .addHelpText('after', `\nExample:\n  ${about.example}`);
}

/** A noun whose verbs are commands: typed alone it shows them. */
export function noun(parent: Command, name: string, summary: string): Command {
  return parent.command(name).description(summary);
}
