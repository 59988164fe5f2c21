import canonicalize from 'canonicalize';
import { OnceperError } from '../kernel/error.ts';
import type { Json } from '../kernel/json.ts';

/**
 * The work of an item as SQL. Every text is a constant of the program: the server keeps its plan. `values` are its `$1`, `$2`,
 * …; amounts cross as text with a cast, `$1::bigint`.
 */
export interface SqlWork {
  /**
   * Statements by name, in the order in which they read each other. The relation `claim (key text, request jsonb)` holds a row
   * for every item that was won and is empty otherwise: each statement reads it, or one before it, and so writes nothing for
   * a duplicate. A statement sees the others' rows by their `returning` only.
   */
  readonly steps: Readonly<Record<string, string>>;
  readonly values?: readonly unknown[];
  /**
   * `known`: an expression over `key`, `request` and the values, stored as the key is won (cheapest). `read`: a select of
   * `key, result` over the steps, stored after them. Either is jsonb. Without it the result is null.
   */
  readonly result?: { readonly known: string } | { readonly read: string };
}

/** One unit of work: its key derives from the business (`payout:2026-09:m-1001`), its request says what is asked for. */
export interface Item {
  readonly key: string;
  readonly request: Json;
}

/** An item whose request is RFC 8785 canonical JSON. */
export interface Asked {
  readonly key: string;
  readonly request: string;
}

const NAME = /^[a-z][a-z0-9_]*$/;
const OURS = ['asked', 'won', 'claim', 'stored', 'item'];
const KEY_BYTES = 500;

/**
 * The item with its request's canonical text: names in any order and numbers in any notation are one request. Throws
 * OnceperError `malformed_item` for a key outside 1 to 500 bytes, and for what RFC 8785 can't write (a bigint, NaN).
 */
export function askedOf(key: string, request: Json): Asked {
  if (key.includes('\0')) throw malformed(key.replaceAll('\0', '?'), 'a key has no NUL');
  if (key === '' || Buffer.byteLength(key) > KEY_BYTES) throw malformed(key, `a key has 1 to ${KEY_BYTES} bytes`);
  try {
    const text = canonicalize(request);
    if (text !== undefined) return { key, request: text };
  } catch (error) {
    throw malformed(key, error instanceof Error ? error.message : String(error));
  }
  throw malformed(key, 'its request is undefined');
}

function malformed(key: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_item',
    message: `the item has no canonical form: ${reason}`,
    remedy: 'write a short key, and a request of texts, booleans, lists and finite numbers; amounts as text',
    at: key.slice(0, KEY_BYTES),
  });
}

/**
 * The steps as members of a `with`. Throws OnceperError `unguarded_work` where a step reads neither
 * `claim` nor a step before it: it would be executed for duplicates too.
 */
export function stepsOf(work: SqlWork): string[] {
  const names: string[] = ['claim'];
  const members: string[] = [];
  for (const [name, step] of Object.entries(work.steps)) {
    if (!NAME.test(name) || OURS.includes(name)) throw unguarded(name, `'${name}' can't name a step`);
    if (!reads(step, names)) throw unguarded(name, `the step '${name}' reads neither claim nor a step before it`);
    members.push(`${name} as (\n${step}\n)`);
    names.push(name);
  }
  return members;
}

/** Whether a statement takes rows from one of these relations; texts in quotes and comments don't count. */
function reads(step: string, names: readonly string[]): boolean {
  const bare = step.replaceAll(/'(?:[^']|'')*'|--[^\n]*|\/\*[\s\S]*?\*\//g, ' ');
  return new RegExp(`(?:\\b(?:from|join|using)\\b|,)\\s*(?:${names.join('|')})\\b`, 'i').test(bare);
}

function unguarded(step: string, message: string): OnceperError {
  return new OnceperError({
    code: 'unguarded_work',
    message,
    remedy: 'let each step take its rows from claim, or from a step that does: insert … select … from claim',
    at: step,
  });
}

/** What is stored as the key is won; null (of SQL) where the result comes later. */
export function knownResult(work: SqlWork): string {
  if (work.result === undefined) return `'null'::jsonb`;
  return 'known' in work.result ? `(${work.result.known})::jsonb` : 'null::jsonb';
}

/** The member that stores results made by the steps, of won items and no others; none where nothing is read. */
export function storedResult(work: SqlWork): string[] {
  if (work.result === undefined || 'known' in work.result) return [];
  return [
    `stored as (
insert into onceper.item_result (key, result)
select won.key, made.result
  from won
  join (${work.result.read}) as made (key, result) on made.key = won.key
returning key, result
)`,
  ];
}

/** The fingerprint of a canonical text. The server takes it: of what a duplicate costs Node, it would be a tenth. */
export function fingerprint(request: string): string {
  return `sha256(convert_to(${request}, 'UTF8'))`;
}

/** The result of an item that is there, wherever it was stored. */
export const STORED_RESULT =
  'coalesce(item.result, (select made.result from onceper.item_result made where made.key = item.key))';
