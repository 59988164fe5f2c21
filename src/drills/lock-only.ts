import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createHttpGateway } from '../gateway/http.ts';
import type { Gateway } from '../gateway/port.ts';
import { startSimulator } from '../gateway/simulator/simulator.ts';
import { type Drill, type DrillTools, type Fact, fact } from './drill.ts';
import { createRowLock, type ExpiringLock } from './expiring-lock.ts';
import { createGate } from './gate.ts';
import { mustBeGranted, type Ours, oursOn } from './ours.ts';
import { createReplicatedLock } from './redis-failover.ts';
import { createRedisLock, findRedis } from './redis-lock.ts';
import { importSample } from './sample-month.ts';
import { makePayday, markPaid, PAYDAY, paidMerchants, pay, unpaid } from './simple-payday.ts';
import type { Stage } from './stage.ts';
import { until } from './until.ts';

const TERMS = { keyWindowMs: 60_000, visibilityDelayMs: 100, timeoutMs: 400 };
const LOCK_MS = 300;
/** Longer than the drill: this lock never runs out. */
const LONG_MS = 600_000;
/** A holder stalls after so many payments: a long garbage collection, a full disk, a machine that was suspended. */
const PAID_BEFORE = 3;

/**
 * A lock with an expiry against our ledger, on the same counterparty: the holder is slow, the lock runs out, somebody else takes
 * it and pays, and the first goes on where it was. The lock did what it promised; nothing else knows that it has moved on.
 */
export const lockOnly: Drill = {
  name: 'lock-only',
  fault: 'the holder of a lock that expires stalls and wakes up after somebody else has taken the lock and paid',
  guard:
    'every write names its fence, and every try of an effect its one number: a holder that is late changes nothing',
  async run(tools) {
    const stage = await tools.setStage();
    const journal = join(stage.folder, 'simple.jsonl');
    const simulator = await startSimulator({ port: 0, journal });
    const gateway = createHttpGateway({ url: simulator.url, ...TERMS });
    const redis = findRedis(tools.options.environment['PATH'] ?? '');
    const lock = redis === null ? await createRowLock(stage.db) : await createRedisLock(redis, tools.folder);
    tools.tell(`the lock is ${lock.name}`);
    try {
      const alone = await paidUnderLock(stage, gateway, lock, { journal, prefix: 'alone', forMs: LOCK_MS });
      const asked = await paidUnderLock(stage, gateway, lock, { journal, prefix: 'asked', forMs: LOCK_MS });
      return [
        fact('a lock alone: merchants paid', PAYDAY, alone.paid),
        fact('a lock alone: merchants paid twice', PAYDAY - PAID_BEFORE, alone.twice),
        fact('a lock that is asked before each payment: merchants paid twice', 1, asked.twice),
        ...(redis === null ? withoutRedis(tools) : await failedOver(stage, gateway, journal, { redis, tools })),
        ...(await ours(stage, gateway, journal)),
      ];
    } finally {
      await lock.close();
      await gateway.close();
      await simulator.stop();
    }
  },
};

interface Worker {
  readonly holder: string;
  /** Called before the n-th payment, from 0. */
  readonly before: (payment: number) => Promise<void>;
}

interface Payday {
  readonly journal: string;
  /** How its merchants' names begin. With `asked` the lock is asked before each payment. */
  readonly prefix: 'alone' | 'asked' | 'failed-over';
  readonly forMs: number;
  /** What happens while the first holder stands in the middle. */
  readonly stalled?: () => Promise<void>;
}

/** Two workers, one lock: the first stalls in the middle until the second, which waits for the lock, is through. */
async function paidUnderLock(stage: Stage, gateway: Gateway, lock: ExpiringLock, payday: Payday) {
  const { journal, prefix, forMs } = payday;
  await makePayday(stage.db);
  const secondDone = createGate();
  const stalled = createGate();
  const first: Worker = {
    holder: randomUUID(),
    async before(payment) {
      if (payment !== PAID_BEFORE) return;
      stalled.open();
      await secondDone.passed;
    },
  };
  const working = work(first);
  await stalled.passed;
  await payday.stalled?.();
  await work({ holder: randomUUID(), before: () => Promise.resolve() });
  secondDone.open();
  await working;
  return paidMerchants(journal, prefix);

  async function work({ holder, before }: Worker): Promise<void> {
    await until('the lock', () => lock.take(holder, forMs), 10_000, 20);
    for (const [payment, merchant] of (await unpaid(stage.db)).entries()) {
      if (prefix === 'asked' && !(await lock.isHeldBy(holder))) return;
      await before(payment);
      if (await pay(gateway, `${prefix}-${merchant}`, `${prefix}-${randomUUID()}`)) await markPaid(stage.db, merchant);
    }
    await lock.giveBack(holder);
  }
}

function withoutRedis({ tell }: DrillTools): Fact[] {
  tell('redis-server is not on the path: the failover of a lock to a replica without its key was not tried');
  return [];
}

/** Nobody stalls and nothing expires: the replica that takes over never heard of the lock, and gives it to the next. */
async function failedOver(
  stage: Stage,
  gateway: Gateway,
  journal: string,
  { redis, tools }: { readonly redis: string; readonly tools: DrillTools },
): Promise<Fact[]> {
  const lock = await createReplicatedLock(redis, tools.folder);
  try {
    lock.delayReplica();
    const { paid, twice } = await paidUnderLock(stage, gateway, lock, {
      journal,
      prefix: 'failed-over',
      forMs: LONG_MS,
      stalled: () => lock.failOver(),
    });
    return [
      fact('a lock whose primary fails over, its holder alive and in time: merchants paid', PAYDAY, paid),
      fact('a lock whose primary fails over: merchants paid twice', PAYDAY - PAID_BEFORE, twice),
    ];
  } finally {
    await lock.close();
  }
}

/** The same two stalls in ours: a holder of the lease in the middle of a month, and a relay in the middle of a send. */
async function ours(stage: Stage, gateway: Gateway, journal: string): Promise<Fact[]> {
  const rule = { leaseSeconds: 2 };
  const sample = await importSample(stage, { merchants: 12, months: 1, subjectsPerSlice: 4, rule });
  const us = oursOn(stage, sample);
  const { run } = await us.open();
  const first = mustBeGranted(await us.claim(run));
  await us.perform(first, first.slices.slice(0, 1));
  const second = await until('the lease to end', async () => granted(us, run), 30_000);
  const late = await us.perform(first, first.slices.slice(1));
  await us.perform(second, second.slices);
  const lateClose = await us.close(first);
  const closed = await us.close(second);
  const lost = await stalledRelay(us, gateway);
  const { paid, twice } = paidMerchants(journal, 'm-');
  return [
    fact("ours: the stalled holder's slices", 'lease_lost, lease_lost', late.join(', ')),
    fact('ours: its close, and that of its successor', 'lease_lost, done', `${lateClose}, ${closed}`),
    fact('ours: results of the stalled relay that changed a row', 0, paid - lost),
    fact('ours: merchants paid', await payouts(stage), paid),
    fact('ours: merchants paid twice', 0, twice),
  ];
}

async function granted(us: Ours, run: string) {
  const claimed = await us.claim(run);
  return claimed.kind === 'granted' ? claimed : null;
}

/** A relay that stalls before the first byte of every send until another has delivered everything; how many results it lost. */
async function stalledRelay(us: Ours, gateway: Gateway): Promise<number> {
  const delivered = createGate();
  let [lost, waiting] = [0, 0];
  const stalling: Gateway = {
    ...gateway,
    async send(number, body) {
      waiting += 1;
      await delivered.passed;
      return gateway.send(number, body);
    },
  };
  const relaying = us.relay(stalling, ({ kind }) => {
    if (kind === 'lost') lost += 1;
  });
  await until('the relay to stand before its sends', () => Promise.resolve(waiting > 0), 10_000);
  await us.deliver(gateway);
  delivered.open();
  await relaying;
  return lost;
}

async function payouts(stage: Stage): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>('select count(*)::int4 as n from onceper.outbox');
  return rows[0]?.n ?? 0;
}
