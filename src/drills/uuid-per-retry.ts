import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { createHttpGateway } from '../gateway/http.ts';
import type { Gateway } from '../gateway/port.ts';
import { startSimulator } from '../gateway/simulator/simulator.ts';
import { type Drill, type Fact, fact } from './drill.ts';
import { mustBeGranted, oursOn } from './ours.ts';
import { importSample } from './sample-month.ts';
import { makePayday, markPaid, PAYDAY, paidMerchants, pay, unpaid } from './simple-payday.ts';
import type { Stage } from './stage.ts';

const TERMS = { keyWindowMs: 60_000, visibilityDelayMs: 100, timeoutMs: 1_000 };
/** Every third transfer is made and its answer is lost. */
const DROP_EVERY = 3;

/**
 * "Unique per request", read as a fresh key for each retry, against a number that derives from what is paid, on the same
 * counterparty: whatever was acted on and not answered for is a new request the second time.
 */
export const uuidPerRetry: Drill = {
  name: 'uuid-per-retry',
  fault: 'the gateway acts on every third transfer and drops the answer, and a client retries with a fresh key',
  guard: 'the number of an effect derives from key, subject, currency and effect, and stays over every try',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const journal = join(stage.folder, 'simple.jsonl');
    const settings = { every: [{ mode: 'drop_after' as const, n: DROP_EVERY }] };
    const simulator = await startSimulator({ port: 0, journal, settings });
    const gateway = createHttpGateway({ url: simulator.url, ...TERMS });
    try {
      const retries = await payWithFreshKeys(stage, gateway);
      const simple = paidMerchants(journal, 'simple-');
      tell(`${retries} payments had no answer and were retried with a fresh key`);
      return [
        fact('a fresh key for each retry: merchants paid', PAYDAY, simple.paid),
        fact('a fresh key for each retry: merchants paid twice', retries, simple.twice),
        fact('payments that had no answer', 'some', retries > 0 ? 'some' : 'none'),
        ...(await ours(stage, gateway, journal)),
      ];
    } finally {
      await gateway.close();
      await simulator.stop();
    }
  },
};

/** Pays everybody, trying again under a new key where no answer came; returns how many merchants that befell. */
async function payWithFreshKeys(stage: Stage, gateway: Gateway): Promise<number> {
  await makePayday(stage.db);
  const retried = new Set<string>();
  for (let open = await unpaid(stage.db); open.length > 0; open = await unpaid(stage.db)) {
    for (const merchant of open) {
      if (await pay(gateway, merchant, `fresh-${randomUUID()}`)) await markPaid(stage.db, merchant);
      else retried.add(merchant);
    }
  }
  return retried.size;
}

async function ours(stage: Stage, gateway: Gateway, journal: string): Promise<Fact[]> {
  const sample = await importSample(stage, { merchants: 24, months: 1, subjectsPerSlice: 12 });
  const us = oursOn(stage, sample);
  const { run } = await us.open();
  const grant = mustBeGranted(await us.claim(run));
  await us.perform(grant, grant.slices);
  await us.close(grant);
  await us.deliver(gateway);
  const { paid, twice } = paidMerchants(journal, 'm-');
  const { payable, unknown, succeeded } = await fates(stage);
  return [
    fact('ours: payments that had no answer', 'some', unknown > 0 ? 'some' : 'none'),
    fact('ours: merchants paid', payable, paid),
    fact('ours: merchants paid twice', 0, twice),
    fact('ours: known to be paid', payable, succeeded),
  ];
}

async function fates(stage: Stage): Promise<{ payable: number; unknown: number; succeeded: number }> {
  const { rows } = await stage.db.query<{ payable: number; unknown: number; succeeded: number }>(
    `select count(*)::int4 as payable, count(*) filter (where state = 'succeeded')::int4 as succeeded,
            (select count(distinct number)::int4 from onceper.delivery where step = 'send' and outcome = 'unknown') as unknown
       from onceper.outbox`,
  );
  return rows[0] ?? { payable: -1, unknown: -1, succeeded: -1 };
}
