import { closeSync, openSync, readFileSync, statSync } from 'node:fs';
import { OnceperError } from '../kernel/error.ts';
import type { Transitions } from '../kernel/transitions.ts';
import { usage } from './fault.ts';

/** A commander parser of a whole number between two others, both included. */
export function wholeNumber(option: string, least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,9}$/.test(text) ? Number.parseInt(text, 10) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw usage(
      `'${text}' is not a whole number from ${least} to ${most}`,
      `${option} ${text}`,
      `for example ${option} ${least}`,
    );
  };
}

/** A commander parser of some states of a life, with commas between them; `of` says whose life it is. */
export function statesOf<State extends string>(life: Transitions<State>, of: string): (text: string) => State[] {
  const names = Object.keys(life) as State[];
  return (text) =>
    text.split(',').map((part) => {
      const known = names.find((name) => name === part.trim());
      if (known !== undefined) return known;
      throw usage(`'${part}' is no state of ${of}`, `--state ${text}`, `one of ${names.join(', ')}`);
    });
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A commander parser of a duration such as `500ms`, `30s`, `5m`, `12h` or `90d`, in milliseconds. */
export function duration(option: string): (text: string) => number {
  return (text) => {
    const [, digits, unit] = /^(\d{1,6})(ms|s|m|h|d)$/.exec(text) ?? [];
    const factor = UNIT_MS[unit ?? ''];
    if (digits !== undefined && factor !== undefined) return Number.parseInt(digits, 10) * factor;
    throw usage(`'${text}' is not a duration`, `${option} ${text}`, `for example ${option} 30s`);
  };
}

/** Collects `--set name=value`; a name said twice or a pair without `=` is refused. */
export function overridePair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([a-z][A-Za-z0-9]*)=(.*)$/s.exec(text) ?? [];
  if (name !== undefined && value !== undefined && !Object.hasOwn(before, name)) return { ...before, [name]: value };
  throw new OnceperError({
    code: 'malformed_override',
    message: name === undefined ? `'${text}' is not name=value` : `${name} is set twice`,
    remedy: 'for example --set empty=true',
    at: `--set ${text}`,
  });
}

/** The text of a file that was named on the command line. Throws OnceperError `file_unreadable`. */
export function readTextFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw fileFault(error, file);
  }
}

/** The path of a file that was named on the command line and can be read. Throws OnceperError `file_unreadable`. */
export function readableFile(file: string): string {
  try {
    closeSync(openSync(file, 'r'));
    if (statSync(file).isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' });
    return file;
  } catch (error) {
    throw fileFault(error, file);
  }
}

/** What a file system refused, as OnceperError `file_unreadable`; any other error passes through. */
export function fileFault(error: unknown, file: string): unknown {
  if (error instanceof OnceperError || !(error instanceof Error) || !('code' in error)) return error;
  const code = String(error.code);
  return new OnceperError({
    code: 'file_unreadable',
    message: `the file can't be used: ${REASONS[code] ?? code}`,
    remedy: 'give the path of a file that this user may use',
    at: file,
    cause: error,
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it or its folder does not exist',
  EACCES: 'no permission',
  EISDIR: 'it is a folder',
};
