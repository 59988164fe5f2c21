import type { Command } from 'commander';
import { pathOf } from '../permissions.ts';

/** What an option was given: a text, several, or nothing but its name. */
export type OptionValue = string | true | readonly string[];

/** A command and what it was told, in the words that were typed and before anybody read a meaning into them. */
export interface Call {
  /** `approvals approve` */
  readonly path: string;
  readonly arguments: readonly string[];
  /** By the long name without its dashes: `counterparty-id`. */
  readonly options: Readonly<Record<string, OptionValue>>;
}

/** Remembers the words of options as they are parsed, since commander keeps only what parsers made of them. */
export class TypedWords {
  readonly #options = new Map<Command, Record<string, OptionValue>>();

  /** Listens to every command of a program. */
  listenTo(program: Command): Command {
    for (const option of program.options) {
      // How an answer is printed is no part of what is asked.
      if (option.name() === 'json') continue;
      program.on(`option:${option.name()}`, (text: string | null) => this.#add(program, option.name(), text ?? null));
    }
    for (const child of program.commands) this.listenTo(child);
    return program;
  }

  /** What was typed for the command that is performed. */
  of(command: Command): Call {
    return { path: pathOf(command), arguments: command.args, options: this.#options.get(command) ?? {} };
  }

  #add(command: Command, name: string, text: string | null): void {
    const options = this.#options.get(command) ?? {};
    const before = options[name];
    this.#options.set(command, { ...options, [name]: text === null ? true : joined(before, text) });
  }
}

function joined(before: OptionValue | undefined, text: string): OptionValue {
  if (before === undefined || before === true) return text;
  return [...(typeof before === 'string' ? [before] : before), text];
}

/**
 * The words of a call as its command parses them; a value stays a value and an argument an argument, whatever they begin with.
 * Null where an option is unknown, or has a value that it doesn't take.
 */
export function wordsOf(command: Command, call: Call): string[] | null {
  const words: string[] = [];
  for (const [name, given] of Object.entries(call.options)) {
    const option = command.options.find(({ long }) => long === `--${name}`);
    if (option === undefined || name === 'json') return null;
    const takesValue = option.required || option.optional;
    if (takesValue === (given === true)) return null;
    if (given === true) words.push(`--${name}`);
    else for (const text of typeof given === 'string' ? [given] : given) words.push(`--${name}=${text}`);
  }
  return [...words, '--', ...call.arguments];
}

/** The command of a program with this path; null where there is none. */
export function commandAt(program: Command, path: string): Command | null {
  let at: Command | undefined = program;
  for (const word of path.split(' ')) at = at?.commands.find((command) => command.name() === word);
  return at ?? null;
}
