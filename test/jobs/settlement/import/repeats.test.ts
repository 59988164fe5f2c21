import { beforeEach, describe, expect, it } from 'vitest';
import type { Imported } from '../../../../src/jobs/settlement/import/imported.ts';
import { auditImportBy } from '../../../../src/ops/import-audit.ts';
import { csv, csvWithIds } from '../rows.ts';
import { Bench, ruleWith } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

/** Content of so many rows, spread over merchants, days and amounts; no two are equal. */
const contents = (rows: number, month = '2026-03') =>
  Array.from({ length: rows }, (_, n) => `m-${n % 97} ${month}-${String(1 + (n % 28)).padStart(2, '0')} ${n}.25 GBP`);
const withIds = (prefix: string, rows: readonly string[]) =>
  csvWithIds(...rows.map((row, n) => `${prefix}${n} ${row}`));

async function stored(): Promise<number> {
  const { rows } = await bench.db.query<{ n: number }>('select count(*)::int4 as n from settlement.transaction');
  return rows[0]?.n ?? -1;
}

function heldOf(imported: Imported) {
  if (imported.kind !== 'held') throw new Error(`the file is ${imported.kind}`);
  return imported.held;
}

describe('a file that mostly repeats stored rows in everything but their ids', () => {
  const may = contents(300, '2026-05');

  it.each([
    ['with other ids', withIds('may-', may), withIds('june-', may)],
    ['with ids, where they came without', csv(...may), withIds('t-', may)],
    ['without ids, where they came with them', withIds('t-', may), csv(...may)],
    [
      'in another order, and with some of its own',
      withIds('may-', may),
      withIds('x-', [...may.toReversed(), ...contents(60)]),
    ],
    ['in part, below a sample', withIds('may-', contents(4_000, '2026-05')), withIds('x-', contents(3_000, '2026-05'))],
  ])('%s is held with figures and samples, and nothing of it is stored', async (_what, first, second) => {
    await bench.importText(first, {}, 'may.csv');
    const before = await stored();
    const imported = await bench.importText(second, {}, 'june.csv');
    expect(imported).toMatchObject({ kind: 'held', added: 0, known: 0, refused: [] });
    const { repeats, of, from, samples } = heldOf(imported);
    expect(repeats / of).toBeGreaterThanOrEqual(0.8);
    expect(from).toEqual([{ file: bench.path('may.csv'), importedAt: expect.any(String), rows: repeats }]);
    expect(samples).toHaveLength(5);
    expect(samples[0]).toMatchObject({ line: 2, file: bench.path('may.csv') });
    expect(await stored()).toBe(before);
  });

  it('also where its month was sealed meanwhile, and the rows would come late', async () => {
    await bench.importText(withIds('may-', may), {}, 'may.csv');
    await bench.settle(ruleWith(), '2026-05');
    expect(heldOf(await bench.importText(withIds('june-', may), {}, 'june.csv'))).toMatchObject({
      repeats: 300,
      of: 300,
    });
  });

  it('also where one merchant has all the rows', async () => {
    const rows = Array.from({ length: 1_500 }, (_, n) => `m-1 2026-03-${10 + (n % 3)} ${n}.25 GBP`);
    await bench.importText(withIds('a-', rows));
    expect(heldOf(await bench.importText(withIds('b-', rows)))).toMatchObject({ repeats: 1_500, of: 1_500 });
    expect(
      await bench.importText(
        withIds(
          'c-',
          rows.map((row) => row.replace('.25', '.26')),
        ),
      ),
    ).toMatchObject({ added: 1_500 });
  });

  it('is stored whole where a person says that it is new', async () => {
    await bench.importText(withIds('may-', may));
    expect(await bench.importText(withIds('june-', may), { as: 'new' })).toMatchObject({ added: 300, known: 0 });
    expect(await bench.importText(withIds('june-', may), {}, 'again.csv')).toMatchObject({ added: 0, known: 300 });
  });

  it('adds only what is not stored where a person says that it is known, each equal one counted once', async () => {
    const twin = 'm-1 2026-05-01 7.00 GBP';
    await bench.importText(withIds('may-', [...may, twin, twin]), {}, 'may.csv');
    const again = withIds('june-', [twin, twin, twin, ...may, 'm-1 2026-05-01 8.00 GBP']);
    expect(heldOf(await bench.importText(again))).toMatchObject({ repeats: 302, of: 304 });
    expect(await bench.importText(again, { as: 'known' })).toMatchObject({
      added: 2,
      known: 302,
      knownFrom: [{ file: bench.path('may.csv'), rows: 302 }],
    });
    expect(await stored()).toBe(304);
    expect(await bench.importText(again, {}, 'later.csv')).toMatchObject({ kind: 'held' });
  });
});

describe('rows that are no repeats', () => {
  it('are stored: a subscription has the same price at the same merchant, and another date', async () => {
    await bench.importText(withIds('may-', contents(200, '2026-05')));
    expect(await bench.importText(withIds('june-', contents(200, '2026-06')))).toMatchObject({ added: 200 });
  });

  it('are stored: equal sales of another till are few, or more of them than before', async () => {
    const ticket = 'm-1 2026-03-01 2.50 GBP';
    await bench.importText(withIds('a-', [ticket, ...contents(50)]));
    expect(await bench.importText(withIds('b-', Array<string>(40).fill(ticket)))).toMatchObject({ added: 40 });
  });

  it('are stored: an export that grows names its own earlier rows, which explain nothing', async () => {
    const ticket = 'm-1 2026-03-01 2.50 GBP';
    await bench.importText(withIds('a-', Array<string>(30).fill(ticket)));
    expect(await bench.importText(withIds('a-', Array<string>(45).fill(ticket)))).toMatchObject({
      added: 15,
      known: 30,
    });
    await bench.empty();
    await bench.importText(csv(...Array<string>(30).fill(ticket)));
    expect(await bench.importText(csv(...Array<string>(45).fill(ticket)))).toMatchObject({ added: 15, known: 30 });
  });

  it('are stored where they are fewer than five, or not four of five', async () => {
    const rows = contents(10);
    await bench.importText(withIds('a-', rows));
    expect(await bench.importText(withIds('b-', rows.slice(0, 4)))).toMatchObject({ added: 4 });
    await bench.empty();
    await bench.importText(withIds('a-', rows));
    expect(await bench.importText(withIds('b-', [...rows, ...contents(3, '2026-04')]))).toMatchObject({ added: 13 });
  });
});

describe('what is known', () => {
  it('is told with the file that it is known from, by ids and by content', async () => {
    await bench.importText(withIds('a-', contents(3)), {}, 'first.csv');
    await bench.importText(withIds('b-', contents(2, '2026-04')), {}, 'second.csv');
    const both = csvWithIds(
      ...contents(3).map((row, n) => `a-${n} ${row}`),
      ...contents(2, '2026-04').map((row, n) => `b-${n} ${row}`),
    );
    expect(await bench.importText(both)).toMatchObject({
      added: 0,
      known: 5,
      knownFrom: [
        { file: bench.path('first.csv'), importedAt: expect.any(String), rows: 3 },
        { file: bench.path('second.csv'), importedAt: expect.any(String), rows: 2 },
      ],
    });
  });

  it('of a second till without ids is told too, and stored once a person says that it is new', async () => {
    await bench.importText(csv('m-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 2.00 GBP'), {}, 'till-1.csv');
    const till = csv('m-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 3.00 GBP');
    expect(await bench.importText(till, {}, 'till-2.csv')).toMatchObject({
      added: 1,
      known: 1,
      knownFrom: [{ file: bench.path('till-1.csv'), rows: 1 }],
    });
    const from = { file: bench.path('till-2.csv'), rows: 1 };
    expect(await bench.importText(till, { as: 'new' }, 'till-2.csv')).toMatchObject({
      added: 1,
      known: 1,
      knownFrom: [from],
    });
    expect(await bench.importText(till, { as: 'new' }, 'till-2.csv')).toMatchObject({
      added: 0,
      known: 2,
      knownFrom: [from, from],
    });
    expect(await stored()).toBe(4);
  });
});

describe('an import is audited', () => {
  it('with its file, its figures and the word that decided it, and not where nothing was stored', async () => {
    const audit = auditImportBy('alice');
    const rows = contents(20);
    await bench.importText(withIds('a-', rows), { audit }, 'may.csv');
    await bench.importText(withIds('b-', rows), { audit }, 'june.csv');
    await bench.importText(withIds('b-', rows), { audit, as: 'known' }, 'june.csv');
    const { rows: entries } = await bench.db.query<{ actor: string; verb: string; subject: string; detail: unknown }>(
      'select actor, verb, subject, detail::jsonb as detail from onceper.audit order by seq',
    );
    const about = (name: string, added: number, as: string | null) => ({
      actor: 'alice',
      verb: 'import',
      subject: bench.path(name),
      detail: {
        file: bench.path(name),
        source: 'generic',
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        rows: 20,
        added,
        known: 20 - added,
        late: 0,
        repeats: 0,
        as,
        allowRepeats: false,
      },
    });
    expect(entries).toEqual([about('may.csv', 20, null), about('june.csv', 0, 'known')]);
  });
});
