import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DRILLS } from '../../src/drills/all.ts';

const root = join(import.meta.dirname, '../..');
const document = readFileSync(join(root, 'docs/invariants.md'), 'utf8');

/** A promise as the document states it. */
interface Row {
  readonly promise: string;
  readonly heldBy: string;
  readonly tests: string;
  readonly drill: string;
  readonly notPromised: string;
}

function rowsOf(markdown: string): Row[] {
  const lines = markdown.split('\n').filter((line) => line.startsWith('|'));
  const cells = lines.map((line) =>
    line
      .slice(1, -1)
      .split(' | ')
      .map((cell) => cell.trim()),
  );
  return cells
    .filter(([first]) => first !== 'promise' && !/^-+\|/.test(first ?? ''))
    .map((row) => {
      expect(row, row[0]).toHaveLength(5);
      const [promise = '', heldBy = '', tests = '', drill = '', notPromised = ''] = row;
      return { promise, heldBy, tests, drill, notPromised };
    });
}

const SQL = readdirSync(join(root, 'migrations'))
  .map((name) => readFileSync(join(root, 'migrations', name), 'utf8').replace(/--.*/g, ''))
  .join('\n');

/** A constraint, a unique index, or the name under which a trigger refuses. */
function isConstraint(name: string): boolean {
  return new RegExp(`(?:constraint (?:= ')?|unique index |refuse_change\\(')${name}\\b`).test(SQL);
}

function inBackquotes(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, token = '']) => token);
}

function sourceOf(file: string): string | null {
  return existsSync(join(root, file)) ? readFileSync(join(root, file), 'utf8') : null;
}

/** What is named as holding a promise and is not there: a constraint, a file, or a function in the file named after it. */
function missingHolders(heldBy: string): string[] {
  return heldBy.split(';').flatMap((part) => {
    const tokens = inBackquotes(part);
    const files = tokens.filter((token) => /[/.]/.test(token));
    const sources = files.map((file) => sourceOf(file) ?? '');
    const absent = files.filter((file) => sourceOf(file) === null);
    const names = tokens.filter((token) => !files.includes(token));
    const defined = (name: string) => new RegExp(`(?:function|const) ${name}\\b`).test(sources.join('\n'));
    return [...absent, ...names.filter((name) => (files.length === 0 ? !isConstraint(name) : !defined(name)))];
  });
}

/** Tests that are named and that no file has: the title stands in the source as it stands here. */
function missingTests(tests: string): string[] {
  return tests.split('<br>').filter((one) => {
    const [, file = '', title = ''] = /^`([^`]+)`: (.+)$/.exec(one) ?? [];
    const quoted = title.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const source = sourceOf(file);
    return title === '' || source === null || !new RegExp(`\\(\\s*(['"\`])${quoted}\\1,`).test(source);
  });
}

function missingDrills(drill: string): string[] {
  const known = new Set(DRILLS.map(({ name }) => name));
  if (drill === '—') return [];
  const named = inBackquotes(drill);
  return named.length === 0 ? [drill] : named.filter((name) => !known.has(name));
}

const ROWS = rowsOf(document);

test('the document has its promises, each with something that holds it and words on what is not promised', () => {
  expect(ROWS.length).toBeGreaterThan(60);
  expect(ROWS.filter((row) => inBackquotes(row.heldBy).length === 0 || row.notPromised === '')).toEqual([]);
  expect(new Set(ROWS.map((row) => row.promise)).size).toBe(ROWS.length);
});

test.each(ROWS)('$promise', ({ heldBy, tests, drill }) => {
  expect(missingHolders(heldBy)).toEqual([]);
  expect(missingTests(tests)).toEqual([]);
  expect(missingDrills(drill)).toEqual([]);
});

test('every drill tries some promise', () => {
  const tried = new Set(ROWS.flatMap((row) => inBackquotes(row.drill)));
  expect(DRILLS.map(({ name }) => name).filter((name) => !tried.has(name))).toEqual([]);
});

test('a row that names what is not there is found, in each of its columns', () => {
  const [planted] = rowsOf(
    '| Planted. | `action_pk`, `action_planted`; `planted` in `src/store/open.ts`; `openRun` in `src/store/planted.ts` | `test/store/open.test.ts`: a title that no test has<br>`test/planted.test.ts`: a key that is done answers every later run with the first result | `planted` | — |',
  );
  expect(missingHolders(planted?.heldBy ?? '')).toEqual([
    'action_planted',
    'planted',
    'src/store/planted.ts',
    'openRun',
  ]);
  expect(missingTests(planted?.tests ?? '')).toHaveLength(2);
  expect(missingDrills(planted?.drill ?? '')).toEqual(['planted']);
  expect(missingDrills('kill-nine')).toEqual(['kill-nine']);
});

test('a title counts only as the title of a test, not as any text of its file', () => {
  expect(missingTests('`test/store/open.test.ts`: servicesFor')).toHaveLength(1);
  expect(missingTests('`test/store/open.test.ts`: a key that is done answers every later run')).toHaveLength(1);
  expect(
    missingTests('`test/store/open.test.ts`: a key that is done answers every later run with the first result'),
  ).toEqual([]);
});
