import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withoutPassword } from '../../src/app/database-url.ts';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { documentOf, type ErrorDocument, emptyHome, typed } from './command-line.ts';

const jobs = [createSettlementJob()];
const RULE = {
  job: 'settlement',
  zone: 'Europe/London',
  period: 'month',
  first: '2026-01',
  calendar: { dayOfMonth: 1, hour: 2, minute: 0 },
  parameters: { fees: { GBP: { basisPoints: 150, fixed: '20' } } },
};
let database: TestDatabase;
let environment: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  environment = { DATABASE_URL: database.url };
});
afterAll(() => database.drop());

const command = (...line: string[]) => typed(line, environment, { jobs });

function file(name: string, text: string): string {
  const at = path.join(emptyHome, name);
  writeFileSync(at, text);
  return at;
}

describe('migrate --rules', () => {
  test('before any rule is loaded, what needs one says so and exits 3', async () => {
    const printed = await command('periods', 'settlement', '--json');
    expect(documentOf<ErrorDocument>(printed).error).toMatchObject({
      code: 'no_rule',
      remedy: 'npx onceper migrate --rules rules/settlement.json',
    });
    expect(printed.code).toBe(3);
  });

  test('loads version 1, and finds it unchanged the second time', async () => {
    const rules = file('rule.json', JSON.stringify(RULE));
    for (const kind of ['loaded', 'unchanged']) {
      const printed = await command('migrate', '--rules', rules, '--json');
      expect(documentOf(printed)).toEqual({
        applied: [],
        rule: { job: 'settlement', version: 1, kind, unclosed: null },
      });
      expect(printed.code).toBe(0);
    }
  });

  test('never replaces a rule: a file that says something else is a conflict', async () => {
    const other = file('other.json', JSON.stringify({ ...RULE, first: '2025-01' }));
    const printed = await command('migrate', '--rules', other);
    expect(printed.err).toMatch(/^rule_differs: version 1 .*\(.*other\.json\) — /);
    expect(printed.code).toBe(4);
  });

  test.each([
    ['a field it does not know', { ...RULE, colour: 'red' }, 'malformed_rule'],
    ['a zone that does not exist', { ...RULE, zone: 'Europe/Londn' }, 'unknown_zone'],
    ['a first period that is none', { ...RULE, first: '2026-13' }, 'malformed_period'],
    [
      'a day that no month has',
      { ...RULE, calendar: { month: 2, dayOfMonth: 30, hour: 0, minute: 0 } },
      'malformed_calendar',
    ],
    ['a job that does not exist', { ...RULE, job: 'nope' }, 'unknown_job'],
    [
      'fees in a currency that does not exist',
      { ...RULE, parameters: { fees: { XYZ: { basisPoints: 1, fixed: '0' } } } },
      'malformed_rule',
    ],
  ])('refuses a file with %s', async (_, rule, code) => {
    const printed = await command('migrate', '--rules', file('bad-rule.json', JSON.stringify(rule)), '--json');
    expect(documentOf<ErrorDocument>(printed).error.code).toBe(code);
    expect(printed.code).toBe(2);
  });
});

describe('up, where variables name both servers', () => {
  const up = (...line: string[]) =>
    typed(['up', ...line], { DATABASE_URL: database.url, TEMPORAL_ADDRESS: '127.0.0.1:7233' }, { jobs });

  test('starts none, migrates, loads the rule, prints no password, and ends', async () => {
    const printed = await up('--rules', file('rule.json', JSON.stringify(RULE)), '--json');
    expect(documentOf(printed)).toMatchObject({
      kind: 'given',
      databaseUrl: withoutPassword(database.url),
      temporalAddress: '127.0.0.1:7233',
      uiUrl: null,
      applied: [],
      rule: { job: 'settlement', version: 1, kind: 'unchanged' },
    });
    expect(printed.out).not.toContain(new URL(database.url).password || 'no password was given');
    expect(printed.code).toBe(0);
  });

  test('by default loads the committed rule, which here is a conflict', async () => {
    const printed = await up();
    expect(printed.err).toMatch(/^rule_differs: .*\(rules\/settlement\.json\) — /);
    expect(printed.code).toBe(4);
  });
});

const HEADER = 'id,merchant,date,amount,currency\n';

describe('import', () => {
  test('stores a file, and nothing of it the second time', async () => {
    const rows = file('rows.csv', `${HEADER}t1,m-1,2026-01-05,12.34,GBP\nt2,m-2,2026-01-06,-1.00,GBP\n`);
    const facts = expect.stringMatching(/^PostgreSQL \d+\.\d+, zone table [0-9a-f]{12}$/);
    const zone = { name: 'Europe/London', facts, disputed: null };
    const shape = { file: rows, source: 'generic', rows: 2, repeats: 0, late: 0, refused: [], held: null, zone };
    const first = await command('import', rows, '--source', 'generic', '--json');
    expect(documentOf(first)).toEqual({ ...shape, added: 2, known: 0, knownFrom: [] });
    const second = await command('import', rows, '--source', 'generic', '--json');
    expect(documentOf(second)).toEqual({
      ...shape,
      added: 0,
      known: 2,
      knownFrom: [{ file: rows, importedAt: expect.any(String), rows: 2 }],
    });
    expect([first.code, second.code]).toEqual([0, 0]);
  });

  test('refuses a file with a wrong row whole, names each by line, and exits 3', async () => {
    const lines = [
      'x1,m-1,2026-01-05,"1,234.56",GBP',
      'x2,m-1,2026-01-05,1.00,XXZ',
      'x3,m-1',
      'x4,m-1,2026-01-05,1.00,GBP',
    ];
    const rows = file('wrong.csv', `${HEADER}${lines.join('\n')}\n`);
    const printed = await command('import', rows, '--source', 'generic', '--json');
    expect(documentOf(printed)).toMatchObject({
      rows: 4,
      added: 0,
      refused: [{ line: 2 }, { line: 3 }, { line: 4 }],
    });
    expect(printed.err.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/wrong\.csv:2: /),
      expect.stringMatching(/wrong\.csv:3: /),
      expect.stringMatching(/wrong\.csv:4: /),
    ]);
    expect(printed.code).toBe(3);
    const again = file('right.csv', `${HEADER}x4,m-1,2026-01-05,1.00,GBP\n`);
    expect(documentOf(await command('import', again, '--source', 'generic', '--json'))).toMatchObject({ added: 1 });
  });

  test('holds a file that repeats another, says which rows and from where, and exits 3 until a person says what it is', async () => {
    const rows = (id: string) =>
      Array.from({ length: 6 }, (_, n) => `${id}${n},m-7,2026-01-0${n + 1},5.0${n},GBP\n`).join('');
    const may = file('may.csv', `${HEADER}${rows('may')}`);
    const june = ['import', file('june.csv', `${HEADER}${rows('june')}`), '--source', 'generic'];
    expect((await command('import', may, '--source', 'generic')).code).toBe(0);
    const held = await command(...june);
    expect(held.code).toBe(3);
    expect(held.out.split('\n')).toEqual([
      expect.stringMatching(/june\.csv: held, nothing was stored; 6 of the 6 rows that it would add equal stored ones/),
      expect.stringMatching(/^ {2}6 known from .*may\.csv, imported 20/),
      ...[0, 1, 2, 3, 4].map((n) => expect.stringContaining(`line ${n + 2}, id june${n}, equals id may${n} of ${may}`)),
      expect.stringMatching(/--as-known .*--as-new /),
      '',
    ]);
    expect((await command(...june, '--as-new', '--as-known')).code).toBe(2);
    const known = await command(...june, '--as-known', '--json');
    expect(documentOf(known)).toMatchObject({ added: 0, known: 6, knownFrom: [{ file: may, rows: 6 }], held: null });
    const audited = documentOf(await command('audit', 'list', '--verb', 'import', '--json'));
    expect(JSON.stringify(audited)).toContain('"as":"known"');
  });

  test('shows 20 wrong rows, then how many more', async () => {
    const rows = Array.from({ length: 50 }, (_, at) => `y${at},m-1,2026-01-05,nothing,GBP`).join('\n');
    const printed = await command('import', file('fifty.csv', `${HEADER}${rows}\n`), '--source', 'generic');
    const told = printed.err.trimEnd().split('\n');
    expect(told).toHaveLength(21);
    expect(told.at(-1)).toBe('and 30 more');
    expect(printed.out).toContain('nothing of its 50 rows was stored');
  });

  test.each([
    ['a file that does not exist', ['/nowhere.csv', '--source', 'generic'], 'file_unreadable'],
    ['a source that does not exist', ['/dev/null', '--source', 'generc'], 'unknown_source'],
  ])('names %s and exits 2', async (_, line, code) => {
    const printed = await command('import', ...line, '--json');
    expect(documentOf<ErrorDocument>(printed).error.code).toBe(code);
    expect(printed.code).toBe(2);
  });
});
