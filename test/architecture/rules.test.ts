import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseRule } from '../../src/jobs/rule.ts';
import { parseParameters } from '../../src/jobs/settlement/parameters.ts';

const root = join(import.meta.dirname, '../..');
const document = readFileSync(join(root, 'docs/rules.md'), 'utf8');

/** Every field of the document with its default; null where the default is none or said in words. */
const DESCRIBED = new Map(
  [...document.matchAll(/^\| `([a-zA-Z.]+)` \| (.*?) \|/gm)].map(([, field = '', preset = '']) => [
    field,
    /^`([^`]+)`$/.exec(preset)?.[1] ?? null,
  ]),
);

/** The names that a shape in a source gives to its fields. */
function fieldsOf(source: string): string[] {
  return [
    ...source.matchAll(
      /(?:^\s+|\{ )(\w+): (?:z\b|positive|fieldOf|minorUnitsText|currencyCode)|, (\w+): minorUnitsText/gm,
    ),
  ]
    .map(([, one, other]) => one ?? other ?? '')
    .sort();
}

function describedNames(): string[] {
  return [...DESCRIBED.keys()].map((field) => field.split('.').at(-1) ?? '').sort();
}

const MINIMAL = {
  job: 'settlement',
  zone: 'UTC',
  period: 'month',
  first: '2026-01',
  calendar: { hour: 2, minute: 0 },
  parameters: { fees: {} },
};

test('every field of a rule file is described, and every one described exists', () => {
  const sources = ['src/jobs/rule.ts', 'src/jobs/settlement/parameters.ts'];
  const fields = sources.flatMap((file) => fieldsOf(readFileSync(join(root, file), 'utf8')));
  expect(fields.length).toBeGreaterThan(20);
  expect(describedNames()).toEqual(fields.sort());
});

test('a field that is not described is found', () => {
  expect(fieldsOf('z.strictObject({\n  planted: positive.default(3),\n  other: z.string(),\n})')).toEqual([
    'other',
    'planted',
  ]);
});

/** A rule's values under the names that the document gives them: `limits.runsInFlight`. */
function flat(value: object, prefix = ''): Record<string, unknown> {
  const entries = Object.entries(value).map(([name, inner]: [string, unknown]): Record<string, unknown> => {
    const isGroup = typeof inner === 'object' && inner !== null && !Array.isArray(inner);
    return isGroup ? flat(inner, `${prefix}${name}.`) : { [prefix + name]: inner };
  });
  return Object.assign({}, ...entries) as Record<string, unknown>;
}

test('the defaults that are written are those of a rule that states nothing more than it must', () => {
  // The fields of business days have defaults where these are stated at all.
  const held = flat(parseRule({ ...MINIMAL, calendar: { ...MINIMAL.calendar, businessDays: {} } }, 'here'));
  const written = [...DESCRIBED].flatMap(([field, preset]) =>
    preset === null || field.startsWith('parameters.') ? [] : [[field, JSON.parse(preset) as unknown]],
  );
  expect(written.length).toBe(17);
  expect(held).toMatchObject(Object.fromEntries(written));
});

test('what is said to be required is required', () => {
  const required = [...document.matchAll(/^\| `(\w+)` \| required \|/gm)].map(([, field = '']) => field);
  expect(required.length).toBe(6);
  for (const field of required.filter((name) => name !== 'parameters')) {
    expect(() => parseRule({ ...MINIMAL, [field]: undefined }, 'here'), field).toThrow(field);
  }
  expect(() => parseParameters(undefined)).toThrow('parameters');
  expect(() => parseParameters({})).toThrow('parameters.fees');
});
