import { leaseTimes } from '../kernel/lease.ts';
import { attemptsOfKey } from '../store/attempts.ts';
import { claimAttempt, endAttemptOf } from '../store/claim.ts';
import { closeAction, renewLease } from '../store/close.ts';
import { type Drill, type DrillTools, type Fact, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { freeze } from './freeze.ts';
import { delivered, keyEnd } from './key-end.ts';
import { loggedEvents } from './log-events.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { type Spoken, startPlainProxy, startPostgresProxy, type TcpProxy } from './tcp-proxy.ts';
import { until } from './until.ts';

const LEASE_SECONDS = 4;
const SLICES = 14;
const IN_FLIGHT = 8;
/** So many slices the first worker finishes before it is stopped. */
const FINISHED_FIRST = 3;

/**
 * A worker is stopped in the middle of a month, with eight slices about to begin. Its lease ends, another worker takes over and
 * stands before the same slices. Then the first wakes up, knowing nothing, and begins its eight slices before the other does.
 */
export const zombie: Drill = {
  name: 'zombie',
  fault:
    'a worker is stopped past its lease, another takes over, and the first wakes up and goes on as if nothing had happened',
  guard: 'every write of a holder carries the fence of its grant in its where clause, and a later grant has raised it',
  async run(tools) {
    const stage = await tools.setStage();
    const rule = { leaseSeconds: LEASE_SECONDS, slicesInFlight: IN_FLIGHT };
    const sample = await importSample(stage, { merchants: SLICES * 3, months: 1, subjectsPerSlice: 3, rule });
    await stage.openGateway();
    const [first, second, network] = [
      await startPostgresProxy(stage.databaseUrl, holdSlicesAfter(FINISHED_FIRST)),
      await startPostgresProxy(stage.databaseUrl, holdSlicesAfter(0)),
      await startPlainProxy(stage.temporalAddress),
    ];
    try {
      return await drill(tools, stage, sample, { first, second, network });
    } finally {
      await Promise.all([first, second, network].map((proxy) => proxy.close()));
    }
  },
};

/** Lets `count` slices begin; every later one waits before its first statement until it is released. */
function holdSlicesAfter(count: number): (spoken: Spoken) => 'pass' | 'hold' {
  let begun = 0;
  return ({ sql }) => {
    if (!sql.startsWith('begin') || !sql.includes(' slice settlement:')) return 'pass';
    begun += 1;
    return begun <= count ? 'pass' : 'hold';
  };
}

interface Proxies {
  readonly first: TcpProxy;
  readonly second: TcpProxy;
  readonly network: TcpProxy;
}

async function drill(
  tools: DrillTools,
  stage: Stage,
  sample: SampleMonths,
  proxies: Proxies,
): Promise<readonly Fact[]> {
  const { first, second, network } = proxies;
  const { key } = sample;
  const worker = await stage.start('worker', { DATABASE_URL: first.url, TEMPORAL_ADDRESS: network.url });
  await startRun(stage, sample);
  await until('the first worker to stand before its slices', async () => first.held() === IN_FLIGHT, 60_000);
  const wake = freeze(worker);
  network.cut();
  tools.tell(`worker ${worker.pid} is stopped before ${IN_FLIGHT} slices, ${await finished(stage, key)} are finished`);
  await Promise.all([stage.start('worker', { DATABASE_URL: second.url }), stage.start('relay')]);
  await until('the takeover', async () => second.held() === IN_FLIGHT, 60_000);
  const takenOver = (await attemptsOfKey(stage.db, key)).at(-1);
  tools.tell(
    `fence ${takenOver?.fence} has taken over and stands before the same slices; the first worker wakes up now`,
  );
  wake();
  first.release();
  const lost = await lateSlices(stage, key, () => loggedEvents(worker, 'lease_lost').length);
  const byHand = await otherLateWrites(stage, key);
  second.release();
  const end = await keyEnd(stage, key);
  await delivered(stage, key);
  const facts = await factsOf(stage.db, sample.registry, { key, closing: '' }, stage.journal);
  return [
    fact('slices that the woken worker began and lost', IN_FLIGHT, lost),
    fact('slices finished under its fence after the takeover', 0, await finishedLate(stage, key)),
    ...byHand,
    fact('the key', 'done', end),
    fact(
      'how the attempts ended',
      'worker_lost, done',
      (await attemptsOfKey(stage.db, key)).map((one) => one.outcome).join(', '),
    ),
    fact('documents', 1, facts.documents),
    fact('transfers in the journal', facts.payable, facts.transfers),
    fact('numbers executed twice', 0, facts.transfersTwice),
    ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
  ];
}

/** Waits until each slice of the woken worker was turned away, or one of them was not; returns how many were. */
async function lateSlices(stage: Stage, key: string, lost: () => number): Promise<number> {
  await until(
    'the woken worker to try its slices',
    async () => lost() >= IN_FLIGHT || (await finishedLate(stage, key)) === IN_FLIGHT,
    30_000,
  );
  return lost();
}

/** What else a former holder could write, each under the first fence: none may touch a row. */
async function otherLateWrites(stage: Stage, key: string): Promise<Fact[]> {
  const { db } = stage;
  const [attempt] = await attemptsOfKey(db, key);
  const times = leaseTimes(LEASE_SECONDS * 1_000);
  const grant = { key, fence: 1n, times };
  const closed = await closeAction(db, grant, () => Promise.reject(new Error('a former holder reached its document')));
  const end = { key, fence: 1n, outcome: 'failed', code: 'late', detail: null, slicesBegun: 1, budget: 1 } as const;
  const claimed = await claimAttempt(
    db,
    {
      key,
      run: attempt?.run ?? '',
      execution: attempt?.execution ?? '',
      pass: attempt?.pass ?? 0,
      release: 'late',
      budget: 1,
      times,
    },
    { seal: () => Promise.resolve(), plan: () => Promise.resolve([]) },
  );
  return [
    fact('its renewal', 'lost', (await renewLease(db, grant)) ? 'renewed' : 'lost'),
    fact('its close', 'lease_lost', closed.kind),
    fact('its end of the attempt', 'moved on', (await endAttemptOf(db, end)) === null ? 'moved on' : 'ended'),
    fact('its claim, asked again', 'superseded', claimed.kind),
  ];
}

async function finished(stage: Stage, key: string): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>(
    'select count(*)::int4 as n from onceper.slice where key = $1 and done_at is not null',
    [key],
  );
  return rows[0]?.n ?? 0;
}

/** Slices marked by the first fence after the second was granted. */
async function finishedLate(stage: Stage, key: string): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>(
    `select count(*)::int4 as n
       from onceper.slice s
       join onceper.attempt a on a.key = s.key and a.fence = 2
      where s.key = $1 and s.fence = 1 and s.done_at > a.started_at`,
    [key],
  );
  return rows[0]?.n ?? 0;
}
