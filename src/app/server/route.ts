import { z } from 'zod';
import { isWriting, NEEDS } from '../permissions.ts';
import type { Call, OptionValue } from './typed-words.ts';

const ROOT = '/api/v1/';

/** A route of the API and what the address says beside it. */
export interface Route {
  readonly path: string;
  readonly isWriting: boolean;
  /** Further segments of the address. */
  readonly arguments: readonly string[];
  readonly options: Readonly<Record<string, OptionValue>>;
}

/** Whether the server performs a command: those that have a role. Processes and the schema are nobody's to ask for. */
export function isServed(path: string): boolean {
  return Object.hasOwn(NEEDS, path) && NEEDS[path] !== 'anyone';
}

/** `/api/v1/<command's words>/<arguments>?<options>`; null for every other address. */
export function routeOf(url: string): Route | null {
  const [address = '', query = ''] = url.split(/\?(.*)/s);
  const segments = address.startsWith(ROOT) ? decoded(address.slice(ROOT.length).split('/')) : null;
  if (segments === null) return null;
  for (const words of [2, 1]) {
    const path = segments.slice(0, words).join(' ');
    if (segments.length < words || !isServed(path) || path.split(' ').length !== words) continue;
    return { path, isWriting: isWriting(path), arguments: segments.slice(words), options: optionsOf(query) };
  }
  return null;
}

/** The address of a call whose body is something else. */
export function addressOf(call: Call): string {
  const segments = [...call.path.split(' '), ...call.arguments].map(encodeURIComponent).join('/');
  const query = Object.entries(call.options).flatMap(([name, given]) =>
    (given === true ? [''] : typeof given === 'string' ? [given] : given).map(
      (text) => `${encodeURIComponent(name)}=${encodeURIComponent(text)}`,
    ),
  );
  return `${ROOT}${segments}${query.length === 0 ? '' : `?${query.join('&')}`}`;
}

const bodyShape = z.strictObject({
  arguments: z.array(z.string()).max(100).default([]),
  options: z
    .record(z.string().regex(/^[a-z][a-z-]*$/), z.union([z.string(), z.literal(true), z.array(z.string()).max(1_000)]))
    .default({}),
});

/** The arguments and options of a JSON body; null where it has another shape. */
export function parseBody(text: string): Pick<Call, 'arguments' | 'options'> | null {
  try {
    const parsed = bodyShape.safeParse(JSON.parse(text === '' ? '{}' : text));
    return parsed.success ? parsed.data : null;
  } catch {
    return null;
  }
}

function decoded(segments: readonly string[]): string[] | null {
  try {
    return segments.map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** A name alone, or with nothing behind it, is an option that takes nothing. */
function optionsOf(query: string): Record<string, OptionValue> {
  const parameters = new URLSearchParams(query);
  const options = new Map<string, OptionValue>();
  for (const name of parameters.keys()) {
    const given = parameters.getAll(name);
    const [only = ''] = given;
    options.set(name, given.length > 1 ? given : only === '' ? true : only);
  }
  return Object.fromEntries(options);
}
