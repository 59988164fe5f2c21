import type { Call } from './typed-words.ts';

/**
 * The commands that read a file of whoever types. The server has no such files: their bytes are sent along, and their name stays
 * a name. A command whose syntax says `<file>` has its line here, or it is performed here alone.
 */
export const NAMES_FILE: Readonly<Record<string, { readonly argument: number } | { readonly option: string }>> = {
  import: { argument: 0 },
  'audit verify': { option: 'anchor' },
};

/** The file that a call names; null where it names none. */
export function fileNamedBy(call: Call): string | null {
  const where = Object.hasOwn(NAMES_FILE, call.path) ? NAMES_FILE[call.path] : undefined;
  if (where === undefined) return null;
  if ('argument' in where) return call.arguments[where.argument] ?? null;
  const given = call.options[where.option];
  return typeof given === 'string' ? given : null;
}
