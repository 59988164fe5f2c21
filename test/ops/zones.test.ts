import { Client, Connection } from '@temporalio/client';
import { afterAll, describe, expect, test } from 'vitest';
import { createRegistry } from '../../src/jobs/registry.ts';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { compareInstants } from '../../src/kernel/instant.ts';
import {
  clockContinued,
  clockFrom,
  clockOfProcess,
  firstDisagreement,
  type Transition,
  type ZoneClock,
} from '../../src/kernel/zone-clock.ts';
import { compareZones } from '../../src/ops/zones.ts';
import type { Database } from '../../src/store/database.ts';
import { migrate } from '../../src/store/migrate.ts';
import { loadFirstRule } from '../../src/store/rules.ts';
import { clockOfServer } from '../../src/store/zone-tables.ts';
import { documentOf, typed } from '../app/command-line.ts';
import { startCommand } from '../app/command-process.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { testPool } from '../support/ledger.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { waitFor } from '../support/wait.ts';
import { plantChanges } from '../support/zone-changes.ts';
import { postgresWithZone, temporalWithZone } from '../support/zone-servers.ts';

const ZONE = 'Europe/London';
const FIRST = '2026-01';
/** A law that never was, which one of the tables knows: no summer time from 2026 on; and where the clocks first differ for it. */
const LAW = '2026-03-01T00:00:00Z';
const DIFFERS = '2026-03-29T01:00:00Z';

const registry = createRegistry([createSettlementJob()]);

const stops: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
});

const bodyIn = (zone: string) => ({
  job: 'settlement',
  zone,
  period: 'month',
  first: FIRST,
  calendar: { dayOfMonth: 1, hour: 2, minute: 0 },
  parameters: { fees: { GBP: { basisPoints: 0, fixed: '0' } } },
});

/** A database with the rule of settlement in a zone, by a table of its server that may be planted before. */
async function ledgerOf(zone: string, plant?: (db: Database) => Promise<void>): Promise<{ db: Database; url: string }> {
  const database: TestDatabase = await createTestDatabase();
  const db = testPool(database.url, 4);
  stops.push(async () => {
    await db.close();
    await database.drop();
  });
  await plant?.(db);
  await loadFirstRule(db, { job: 'settlement', body: bodyIn(zone), loadedBy: 'test' });
  return { db, url: database.url };
}

/** London's clock as PostgreSQL has it, and as it would be under a law that puts it some hours ahead of UTC for good. */
async function underLaw(from: string, hours: number): Promise<ZoneClock> {
  const { db } = await ledgerOf(ZONE);
  const { clock } = await clockOfServer(db, ZONE, FIRST);
  const law = clockFrom({ ...clock, transitions: [{ at: Date.parse(from) / 1_000, offset: hours * 3_600 }] });
  return clockFrom({ ...clock, transitions: clockContinued(clock, law, from) });
}

function changesOf(clock: ZoneClock): readonly Transition[] {
  const [since, until] = ['2024-01-01T00:00:00Z', '2101-01-01T00:00:00Z'].map((at) => Date.parse(at) / 1_000) as [
    number,
    number,
  ];
  return [{ at: since, offset: clock.offsetAt(since) }, ...clock.transitionsBetween(since, until)];
}

/** A Temporal server of this test's own, whose file of the zone says so. */
async function temporalWith(clock: ZoneClock): Promise<TestNamespace> {
  const { server, stop } = await temporalWithZone(ZONE, changesOf(clock));
  stops.push(stop);
  return { address: server.address, namespace: 'default' };
}

/** A PostgreSQL of this test's own, whose file of the zone says so, with the rule loaded by it. */
async function postgresWith(clock: ZoneClock): Promise<{ readonly url: string }> {
  const { server, stop } = await postgresWithZone(ZONE, changesOf(clock));
  stops.push(stop);
  await migrate(server.url);
  const db = testPool(server.url, 1);
  await loadFirstRule(db, { job: 'settlement', body: bodyIn(ZONE), loadedBy: 'test' });
  await db.close();
  return { url: server.url };
}

async function clientOf({ address, namespace }: TestNamespace): Promise<Client> {
  const connection = await Connection.connect({ address });
  stops.push(() => connection.close());
  return new Client({ connection, namespace });
}

/** A module that makes a process's own table of zones read London as UTC from the law on: Node has no other way to be given one. */
const OTHER_TABLE = `
  const Real = Intl.DateTimeFormat;
  Intl.DateTimeFormat = class extends Real {
    #utc = null;
    constructor(locales, options) {
      super(locales, options);
      if (super.resolvedOptions().timeZone === '${ZONE}') this.#utc = new Real(locales, { ...options, timeZone: 'UTC' });
    }
    formatToParts(at) {
      return this.#utc === null || at < ${Date.parse(LAW)} ? super.formatToParts(at) : this.#utc.formatToParts(at);
    }
  };`;

/** A machine on which a table differs: what a command there is given. */
interface Machine {
  readonly variables: Readonly<Record<string, string>>;
  readonly nodeArguments: readonly string[];
}

async function machineWith(odd: 'this process' | 'PostgreSQL' | 'Temporal'): Promise<Machine> {
  const law = await underLaw(LAW, 0);
  const { url } = odd === 'PostgreSQL' ? await postgresWith(law) : await ledgerOf(ZONE);
  const temporal = odd === 'Temporal' ? await temporalWith(law) : await createTestNamespace();
  return {
    variables: { DATABASE_URL: url, TEMPORAL_ADDRESS: temporal.address, TEMPORAL_NAMESPACE: temporal.namespace },
    nodeArguments:
      odd === 'this process' ? ['--import', `data:text/javascript,${encodeURIComponent(OTHER_TABLE)}`] : [],
  };
}

/** What a worker says of zones before it serves anything; it is drained then. */
async function saidAtStart({ variables, nodeArguments }: Machine): Promise<readonly unknown[]> {
  const worker = startCommand(['worker', '--json'], variables, nodeArguments);
  await waitFor(() => worker.err().includes('"worker_started"') || worker.process.exitCode !== null, {
    what: 'the worker to start',
    timeoutMs: 60_000,
  });
  worker.process.kill('SIGTERM');
  expect({ code: await worker.ended, err: worker.err() }).toMatchObject({ code: 0 });
  const events = worker
    .err()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly event: string });
  const started = events.findIndex(({ event }) => event === 'worker_started');
  return events.slice(0, started).filter(({ event }) => event === 'zone_tables_differ');
}

interface Row {
  readonly check: string;
  readonly state: string;
  readonly detail: string;
  readonly remedy: string | null;
}

async function rowOfDoctor({ variables, nodeArguments }: Machine): Promise<Row | undefined> {
  const doctor = startCommand(['doctor', '--json'], variables, nodeArguments);
  await doctor.ended;
  const { checks } = documentOf<{ checks: readonly Row[] }>({ code: 0, out: doctor.out(), err: doctor.err() });
  return checks.find(({ check }) => check === 'time zone of settlement');
}

describe('where the tables of time zones differ', () => {
  test.each(['this process', 'PostgreSQL', 'Temporal'] as const)(
    'with %s as the odd one out the start and doctor name it, the zone and the instant',
    async (odd) => {
      const machine = await machineWith(odd);
      const read = (table: string) => (table === odd ? '+00:00' : '+01:00');
      const ledger = read('PostgreSQL');
      const reads = `this process ${read('this process')}, PostgreSQL ${read('PostgreSQL')}, Temporal ${read('Temporal')}`;
      expect(await saidAtStart(machine)).toEqual([
        expect.objectContaining({ level: 'warn', job: 'settlement', zone: ZONE, at: DIFFERS, odd, reads, ledger }),
      ]);
      const row = await rowOfDoctor(machine);
      expect(row).toMatchObject({
        state: 'warn',
        remedy: expect.stringContaining('update whichever is behind the law'),
      });
      expect(row?.detail).toMatch(new RegExp(`^${ZONE} from ${DIFFERS} on: this process .* reads `));
      expect(row?.detail).toContain(
        `reads ${read('this process')}, PostgreSQL ${read('PostgreSQL')}, Temporal's server ${read('Temporal')}; ${odd} is the odd one.`,
      );
      expect(row?.detail).toContain(`The ledger goes by ${ledger} (PostgreSQL `);
    },
    120_000,
  );

  test('each from both others nobody is the odd one, and what each reads is said', async () => {
    const { db } = await ledgerOf(ZONE, async (planted) => plantChanges(planted, changesOf(await underLaw(LAW, 0))));
    const client = await clientOf(await createTestNamespace());
    const law = await underLaw(DIFFERS, 3);
    const [standing] = await compareZones(db, client, { registry, clockOfProcess: () => law });
    expect(standing?.dispute).toEqual({
      at: DIFFERS,
      reads: { 'this process': '+03:00', PostgreSQL: '+00:00', Temporal: '+01:00' },
      odd: null,
      ledger: '+00:00',
    });
  });

  test('from the ledger’s alone, which goes by what PostgreSQL said once, none of them is the odd one', async () => {
    const { db } = await ledgerOf(ZONE, async (planted) => plantChanges(planted, changesOf(await underLaw(LAW, 0))));
    await plantChanges(db, changesOf(clockOfProcess(ZONE)));
    const [standing] = await compareZones(db, await clientOf(await createTestNamespace()), { registry });
    expect(standing?.dispute).toEqual({
      at: DIFFERS,
      reads: { 'this process': '+01:00', PostgreSQL: '+01:00', Temporal: '+01:00' },
      odd: null,
      ledger: '+00:00',
    });
  });

  test.each([
    ['forward', 5, '2026-05-11T07:00:00Z'],
    ['back', -5, '2026-05-11T17:00:00Z'],
  ])('by a change %s that Temporal alone knows it is named at the next noon', async (_way, hours, noon) => {
    const client = await clientOf(await temporalWith(await underLaw('2026-05-10T18:00:00Z', hours)));
    const { db } = await ledgerOf(ZONE);
    const [standing] = await compareZones(db, client, { registry });
    const theirs = hours < 0 ? '-05:00' : '+05:00';
    expect(standing?.dispute).toEqual({
      at: noon,
      reads: { 'this process': '+01:00', PostgreSQL: '+01:00', Temporal: theirs },
      odd: 'Temporal',
      ledger: '+01:00',
    });
  });
});

describe('as this machine has them', () => {
  async function doctorOf(
    zone: string,
  ): Promise<{ readonly db: Database; readonly row: Row | undefined; readonly client: Client }> {
    const { db, url } = await ledgerOf(zone);
    const { address, namespace } = await createTestNamespace();
    const client = await clientOf({ address, namespace });
    const given = { DATABASE_URL: url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
    const printed = await typed(['doctor', '--json'], given, { jobs: [createSettlementJob()] });
    const { checks } = documentOf<{ checks: readonly Row[] }>(printed);
    return { db, client, row: checks.find(({ check }) => check === 'time zone of settlement') };
  }

  test('the tables agree on London, doctor says so, and the question leaves nothing behind in Temporal', async () => {
    const { row, client } = await doctorOf(ZONE);
    expect(row).toMatchObject({ state: 'ok', remedy: null });
    expect(row?.detail).toMatch(/^Europe\/London: three tables agree from 2026-01-01T00:00:00Z to /);
    await waitFor(
      async () => {
        const { schedules } = await client.workflowService.listSchedules({ namespace: client.options.namespace });
        return schedules?.length === 0;
      },
      { what: 'no schedule to be listed' },
    );
  });

  test('Vancouver’s are named where Node’s and PostgreSQL’s differ', async () => {
    const { db, client, row } = await doctorOf('America/Vancouver');
    const { clock } = await clockOfServer(db, 'America/Vancouver', FIRST);
    const [standing] = await compareZones(db, client, { registry });
    const { from = '', to = '', dispute } = standing ?? {};
    const differ = firstDisagreement(clock, clockOfProcess('America/Vancouver'), from, to);
    expect(row?.state).toBe(dispute === null ? 'ok' : 'warn');
    if (differ === null) return;
    // Temporal's may differ from the ledger's before Node's does.
    expect(compareInstants(dispute?.at ?? to, differ.at)).toBeLessThanOrEqual(0);
    expect(row?.detail).toContain(`America/Vancouver from ${dispute?.at} on: this process (Node`);
    expect(row?.detail).toContain(`${dispute?.odd ?? 'they'} `);
  });
});
