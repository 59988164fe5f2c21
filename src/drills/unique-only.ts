import { join } from 'node:path';
import { createHttpGateway } from '../gateway/http.ts';
import type { Gateway } from '../gateway/port.ts';
import { startSimulator } from '../gateway/simulator/simulator.ts';
import { expectedPeriods } from '../ops/periods.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { type Drill, type Fact, fact } from './drill.ts';
import { mustBeGranted, oursOn } from './ours.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import { makePayday, markPaid, PAYDAY, paidMerchants, pay, unpaid } from './simple-payday.ts';
import type { Stage } from './stage.ts';
import { until } from './until.ts';

const TERMS = { keyWindowMs: 60_000, visibilityDelayMs: 100, timeoutMs: 1_000 };
const PAID_BEFORE_DEATH = 4;

/**
 * A bare unique constraint: whoever inserts the key does the work, every other start is a duplicate. Nobody is paid twice, ever.
 * But the row of a worker that died looks like that of one that works, and the rest of the month waits for a person.
 */
export const uniqueOnly: Drill = {
  name: 'unique-only',
  fault: 'a worker that has inserted the unique key of a month dies in the middle of paying it',
  guard: 'a grant has a lease that ends by the clock of the database: who is dead can be told, and is taken over from',
  async run({ setStage }) {
    const stage = await setStage();
    const journal = join(stage.folder, 'simple.jsonl');
    const simulator = await startSimulator({ port: 0, journal });
    const gateway = createHttpGateway({ url: simulator.url, ...TERMS });
    try {
      return [...(await unique(stage, gateway, journal)), ...(await ours(stage, gateway, journal))];
    } finally {
      await gateway.close();
      await simulator.stop();
    }
  },
};

const KEY = 'payday:2026-09';

async function unique(stage: Stage, gateway: Gateway, journal: string): Promise<Fact[]> {
  const { db } = stage;
  await makePayday(db);
  await db.query('drop table if exists public.settled');
  await db.query(
    'create table public.settled (key text primary key, at timestamptz not null default clock_timestamp())',
  );
  const worker = openDatabase({ url: stage.databaseUrl, name: 'simple worker', max: 1 });
  const first = await insertKey(worker);
  for (const merchant of (await unpaid(worker)).slice(0, PAID_BEFORE_DEATH)) {
    if (await pay(gateway, merchant, `${KEY}:${merchant}`)) await markPaid(worker, merchant);
  }
  const [whileWorking, rowWhileWorking] = [await insertKey(db), await row(db)];
  await worker.close();
  const [afterDeath, rowAfterDeath] = [await insertKey(db), await row(db)];
  const { paid, twice } = paidMerchants(journal, 'simple-');
  return [
    fact('a unique key: the first start', 'inserted', first),
    fact('a unique key: a second start while the first works', 'duplicate', whileWorking),
    fact('a unique key: a start after the first has died', 'duplicate', afterDeath),
    fact(
      'what the row says of the dead worker, and not of the working one',
      'nothing',
      difference(rowWhileWorking, rowAfterDeath),
    ),
    fact('a unique key: merchants paid twice', 0, twice),
    fact('a unique key: merchants that nobody will pay', PAYDAY - PAID_BEFORE_DEATH, PAYDAY - paid),
  ];
}

async function insertKey(db: Database): Promise<'inserted' | 'duplicate'> {
  const { rowCount } = await db.query('insert into public.settled (key) values ($1) on conflict do nothing', [KEY]);
  return rowCount === 1 ? 'inserted' : 'duplicate';
}

async function row(db: Database): Promise<string> {
  const { rows } = await db.query<{ row: string }>('select s::text as row from public.settled s');
  return rows[0]?.row ?? 'no row';
}

function difference(working: string, dead: string): string {
  return working === dead ? 'nothing' : `${working} became ${dead}`;
}

/** The same death in ours: granted, a slice finished, and gone. */
async function ours(stage: Stage, gateway: Gateway, journal: string): Promise<Fact[]> {
  const rule = { leaseSeconds: 2 };
  const sample = await importSample(stage, { merchants: 12, months: 1, subjectsPerSlice: 4, rule });
  const us = oursOn(stage, sample);
  const { run } = await us.open();
  const dead = mustBeGranted(await us.claim(run));
  await us.perform(dead, dead.slices.slice(0, 1));
  const working = await standing(stage, sample);
  const other = await us.claim(run);
  const stalled = await until('the end of the lease', async () => ended(await standing(stage, sample)), 10_000);
  const heir = await us.claim(run);
  if (heir.kind === 'granted') {
    await us.perform(heir, heir.slices);
    await us.close(heir);
    await us.deliver(gateway);
  }
  const { paid, twice } = paidMerchants(journal, 'm-');
  return [
    fact('ours: the month while its worker works', 'running', working),
    fact('ours: a second claim meanwhile', 'busy', other.kind),
    fact('ours: the month after its worker has died', 'stalled', stalled),
    fact('ours: a claim after that', 'granted', heir.kind),
    fact('ours: merchants paid', await payouts(stage), paid),
    fact('ours: merchants paid twice', 0, twice),
  ];
}

async function standing({ db }: Stage, { registry, last }: SampleMonths): Promise<string> {
  const { periods } = await expectedPeriods(db, registry, { job: 'settlement', from: last, to: last });
  return periods[0]?.state ?? 'not listed';
}

function ended(state: string): string | null {
  return state === 'running' ? null : state;
}

async function payouts(stage: Stage): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>('select count(*)::int4 as n from onceper.outbox');
  return rows[0]?.n ?? 0;
}
