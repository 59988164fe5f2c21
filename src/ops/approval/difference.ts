import { isDeepStrictEqual } from 'node:util';

/**
 * Where two plans differ first, in words for a person: `periods[2].state was missing and is done`. Ids and states only are
 * named; an amount that differs is named without its value, since reasons are stored and logged.
 */
export function differenceOf(approved: unknown, found: unknown): string {
  const at = pathOf(approved, found, '');
  if (at === null) return 'what was approved was edited meanwhile';
  const { path, was, is } = at;
  if (/amounts|subjects/.test(path)) return `what it comes to has changed (${path})`;
  return `${path} was ${wordOf(was)} and is ${wordOf(is)}`;
}

interface Difference {
  readonly path: string;
  readonly was: unknown;
  readonly is: unknown;
}

function pathOf(was: unknown, is: unknown, path: string): Difference | null {
  if (isDeepStrictEqual(was, is)) return null;
  if (!isBranch(was) || !isBranch(is)) return { path, was, is };
  const names = new Set([...Object.keys(was), ...Object.keys(is)]);
  for (const name of names) {
    const place = Array.isArray(is) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    const found = pathOf(was[name], is[name], place);
    if (found !== null) return found;
  }
  return null;
}

function isBranch(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

function wordOf(value: unknown): string {
  if (value === undefined || value === null) return 'absent';
  if (typeof value === 'object') return 'something else';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
