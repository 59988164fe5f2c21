import { afterEach, beforeEach, expect, test } from 'vitest';
import { expected } from '../../../../activities/expected.ts';
import { type JobRule, storedRule } from '../../../../src/jobs/rule.ts';
import { createSettlementJob } from '../../../../src/jobs/settlement/settlement.ts';
import { instantPlus } from '../../../../src/kernel/instant.ts';
import {
  clockFrom,
  clockIn,
  clockOfProcess,
  firstDisagreement,
  type Transition,
} from '../../../../src/kernel/zone-clock.ts';
import { clockOf } from '../../../../src/store/database.ts';
import { activeRule, loadFirstRule } from '../../../../src/store/rules.ts';
import { documentOf, typed } from '../../../app/command-line.ts';
import { servicesFor } from '../../../support/ledger.ts';
import { plantChanges } from '../../../support/zone-changes.ts';
import { csv, csvWithIds } from '../rows.ts';
import { Bench, feesOf } from '../settling.ts';

let bench: Bench;
beforeEach(async () => {
  bench = new Bench();
  await bench.open();
});
afterEach(() => bench.close());

/** The rule of settlement as it is stored: its clock is the ledger's. */
async function stored(): Promise<JobRule> {
  const rule = await activeRule(bench.db, 'settlement');
  if (rule === null) throw new Error('settlement has no rule');
  return storedRule(rule);
}

async function load(over: {
  readonly zone: string;
  readonly first: string;
  readonly period?: string;
}): Promise<JobRule> {
  const body = {
    job: 'settlement',
    period: 'month',
    calendar: { hour: 2, minute: 0, ...(over.period === 'day' ? {} : { dayOfMonth: 1 }) },
    parameters: { fees: feesOf('GBP') },
    ...over,
  };
  await loadFirstRule(bench.db, { job: 'settlement', body, loadedBy: 'test' });
  return stored();
}

/** Where each transaction stands, in the order of its amount, which the tests give by the order of time. */
async function places() {
  const { rows } = await bench.db.query<{ period: string; on: string; lateFrom: string | null }>(
    `select period, occurred_on as on, late_from as "lateFrom" from settlement.transaction order by amount, id`,
  );
  return rows.map(({ period, on, lateFrom }) => [period, on, lateFrom]);
}

interface StoredPeriod {
  readonly period: string;
  readonly starts: string;
  readonly ends: string;
  readonly facts: string;
}

async function periodRows(): Promise<readonly StoredPeriod[]> {
  const { rows } = await bench.db.query<StoredPeriod>(
    `select period, starts, ends, zone_facts as facts from settlement.period order by starts`,
  );
  return rows;
}

async function factsOfImports(): Promise<readonly string[]> {
  const { rows } = await bench.db.query<{ facts: string }>(
    `select zone_facts as facts from settlement.import order by id`,
  );
  return rows.map(({ facts }) => facts);
}

test.each([
  ['month', '2011-11', '2011-12', '2011-12'],
  ['day', '2011-12-28', '2011-12-29', '2011-12-31'],
])(
  'a date that the zone left out is refused by its line, and its neighbours are stored',
  async (period, first, before, after) => {
    const rule = await load({ zone: 'Pacific/Apia', period, first });
    const neighbours = [
      'm-1 2011-12-29 1.00 GBP',
      'm-1 2011-12-30T09:59:59Z 2.00 GBP',
      'm-1 2011-12-30T10:00:00Z 3.00 GBP',
      'm-1 2011-12-31 4.00 GBP',
    ];
    const [one = '', two = '', ...rest] = neighbours;
    const rows = [one, two, 'm-1 2011-12-30 9.00 GBP', ...rest];
    const ids = (list: readonly string[]) => csvWithIds(...list.map((row, n) => `t${n} ${row}`));
    for (const text of [ids(rows), csv(...rows)]) {
      expect(await bench.importText(text, { rule })).toMatchObject({
        kind: 'refused',
        added: 0,
        refusedTotal: 1,
        refused: [{ line: 4, reason: expect.stringContaining('jumped over 2011-12-30') }],
      });
    }
    expect(await places()).toEqual([]);

    for (const text of [ids(neighbours), csv(...neighbours)]) {
      expect(await bench.importText(text, { rule })).toMatchObject({ kind: 'imported', added: 4, late: 0 });
    }
    const each = [
      [before, '2011-12-29', null],
      [before, '2011-12-29', null],
      [after, '2011-12-31', null],
      [after, '2011-12-31', null],
    ];
    expect(await places()).toEqual(each.flatMap((place) => [place, place]));
    const around = (await periodRows()).filter(({ period: name }) => name >= before && name <= after);
    expect(around.map(({ period: name }) => name)).toEqual([...new Set([before, after])]);
    expect(around.at(-1)?.starts).toBe(period === 'day' ? around[0]?.ends : around[0]?.starts);
    for (const name of new Set([before, after])) {
      const { result } = await bench.settle(rule, name);
      expect(result.document.totals['GBP']).toMatchObject({
        sales: before === after ? '2000' : name === before ? '600' : '1400',
      });
    }
  },
);

const HOUR = 3_600;

/** Vancouver's winters; a law of one spring may have ended them. */
const WINTERS = [
  ['2023-01-01T00:00:00Z', -8],
  ['2023-03-12T10:00:00Z', -7],
  ['2023-11-05T09:00:00Z', -8],
  ['2024-03-10T10:00:00Z', -7],
  ['2024-11-03T09:00:00Z', -8],
  ['2025-03-09T10:00:00Z', -7],
  ['2025-11-02T09:00:00Z', -8],
  ['2026-03-08T10:00:00Z', -7],
  ['2026-11-01T09:00:00Z', -8],
  ['2027-03-14T10:00:00Z', -7],
  ['2027-11-07T09:00:00Z', -8],
  ['2028-03-12T10:00:00Z', -7],
  ['2028-11-05T09:00:00Z', -8],
] as const;

function vancouver(lastWinter: number): readonly Transition[] {
  return WINTERS.filter(([at]) => at < `${lastWinter + 1}-10`).map(([at, hours]) => ({
    at: Date.parse(at) / 1_000,
    offset: hours * HOUR,
  }));
}

/** By a table without winters after one year, and by one that still has them, an hour of the night lies in two months. */
const BOUNDARIES = [
  { year: 2025, ledger: 'new' },
  { year: 2025, ledger: 'old' },
  // As the law is, which this machine's tables know or do not.
  { year: 2026, ledger: 'new' },
  { year: 2026, ledger: 'old' },
] as const;

test.for(BOUNDARIES)(
  'a file of rows at a disputed boundary is placed by the ledger, and is known when the tables have changed',
  async ({ year, ledger }, { skip }) => {
    const now = await clockOf(bench.db);
    skip(now < `${year}-12-01T08:00:00Z`, `December ${year} has not come`);
    const tables = { new: vancouver(year - 1), old: vancouver(2028) };
    await plantChanges(bench.db, tables[ledger]);
    const rule = await load({ zone: 'America/Vancouver', first: `${year}-10` });
    const { facts } = clockIn(rule);
    const instants = ['06:59:59Z', '07:00:00Z', '07:59:59Z', '08:00:00Z'].map((time) => `${year}-12-01T${time}`);
    const rows = instants.map((at, n) => `m-1 ${at} ${n + 1}.00 GBP`);
    const files = [csvWithIds(...rows.map((row, n) => `t${n} ${row}`)), csv(...rows)];
    const [november, december] = [
      [`${year}-11`, `${year}-11-30`, null],
      [`${year}-12`, `${year}-12-01`, null],
    ];
    const disputed = ledger === 'new' ? december : november;
    const placed = [november, disputed, disputed, december].flatMap((place) => [place, place]);

    const process = firstDisagreement(clockIn(rule), clockOfProcess(rule.zone), `${year}-10-01T07:00:00Z`, now);
    // A winter of 2025 every table knows.
    if (year === 2025 && ledger === 'new') expect(process?.at).toBe('2025-11-02T09:00:00Z');
    for (const [n, text] of files.entries()) {
      const printed = await command(await bench.write(`${n}.csv`, text));
      expect(documentOf(printed)).toMatchObject({
        added: 4,
        known: 0,
        late: 0,
        refused: [],
        zone: { name: rule.zone, facts, disputed: process?.at ?? null },
      });
      if (process === null) expect(printed.err).toBe('');
      else expect(printed.err).toContain(`${rule.zone} from ${process.at} on: this process (tz `);
      if (process !== null)
        expect(printed.err).toContain(
          `rows are placed by the ledger's ${ledger === 'new' ? '-07:00' : '-08:00'} (${facts})`,
        );
    }
    expect(await places()).toEqual(placed);
    const before = await periodRows();
    expect(new Set(before.map((row) => row.facts))).toEqual(new Set([facts]));
    expect(await factsOfImports()).toEqual([facts, facts]);

    await plantChanges(bench.db, tables[ledger === 'new' ? 'old' : 'new']);
    await expected(servicesFor(bench.db, [createSettlementJob()]));
    const later = await stored();
    expect(clockIn(later).facts).not.toBe(facts);
    // And by a release that never asked the ledger: it reads the other dates off the same instants.
    const other = {
      ...later,
      clock: clockFrom({ zone: rule.zone, facts: 'other', transitions: tables[ledger === 'new' ? 'old' : 'new'] }),
    };
    for (const as of [later, other]) {
      for (const text of files.toReversed()) {
        expect(await bench.importText(text, { rule: as })).toMatchObject({
          kind: 'imported',
          added: 0,
          known: 4,
          refusedTotal: 0,
        });
      }
    }
    expect(await places()).toEqual(placed);
    expect(await periodRows()).toEqual(before);
    expect((await factsOfImports()).slice(2)).toEqual([clockIn(later).facts, clockIn(later).facts, 'other', 'other']);

    // The rows that are made from then on say by which table, and touch those that stand.
    await bench.preparePeriods(later, instantPlus(now, { hours: 400 * 24 }));
    const all = await periodRows();
    expect(all.slice(0, before.length)).toEqual(before);
    expect(all.length).toBeGreaterThan(before.length + 10);
    for (const [n, row] of all.slice(before.length).entries()) {
      expect(row).toMatchObject({ starts: all[before.length + n - 1]?.ends, facts: clockIn(later).facts });
    }
  },
);

async function command(file: string) {
  return typed(
    ['import', file, '--source', 'generic', '--json'],
    { DATABASE_URL: bench.url },
    { jobs: [createSettlementJob()] },
  );
}
