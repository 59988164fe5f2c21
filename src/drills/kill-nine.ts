import { lastPlace } from '../jobs/settlement/hold-line.ts';
import { attemptsOfKey } from '../store/attempts.ts';
import { sliceCounts } from '../store/slices.ts';
import type { Child } from './children.ts';
import { type Drill, type DrillTools, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { holdSlice } from './lose-connection.ts';
import { importSample } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { until } from './until.ts';

const MERCHANTS = 5_000;
/** 200 slices of 25. */
const SUBJECTS_PER_SLICE = 25;
const KILL_WORKER_AFTER_SLICES = [10, 45, 80, 115, 150];
const KILL_RELAY_AFTER_DELIVERIES = [100, 700, 1_500, 2_500, 3_500];

/** What a killed relay held is due again after its lease, two calls and their margins: 6 s, and not the 24 s of a slow bank. */
const TERMS = { ONCEPER_GATEWAY_TIMEOUT: '1s', ONCEPER_GATEWAY_VISIBILITY_DELAY: '200ms' };

/** Five times the worker and five times the relay, each at a chosen progress, each replaced by a new process. */
export const killNine: Drill = {
  name: 'kill-nine',
  fault: `kill -9 of worker (after ${KILL_WORKER_AFTER_SLICES.join(', ')} slices) and relay (after ${KILL_RELAY_AFTER_DELIVERIES.join(', ')} deliveries) while ${MERCHANTS} merchants are settled`,
  guard: 'a slice is one transaction, and an effect keeps its number over every try',
  async run(tools) {
    const stage = await tools.setStage();
    const sample = await importSample(stage, { merchants: MERCHANTS, months: 1, subjectsPerSlice: SUBJECTS_PER_SLICE });
    await stage.startGateway(['--delay', '20']);
    const place = await lastPlace(stage.db, sample.last);
    if (place === null) throw new Error('the sample has no row in its month');
    // The last slice stands until the last kill, so that no worker is too fast to be killed.
    const held = await holdSlice(stage.db, sample.key, sample.last, place);
    const worker = await stage.start('worker');
    await startRun(stage, sample);
    const workerKills = await killWorkers(tools, stage, sample.key, worker);
    await held.letGo();
    const end = await keyEnd(stage, sample.key, 120_000);
    const relayKills = end === 'done' ? await killRelays(tools, stage, sample.key) : 0;
    if (end === 'done') await delivered(stage, sample.key, 180_000);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    const outcomes = (await attemptsOfKey(stage.db, sample.key)).map((attempt) => attempt.outcome);
    return [
      fact('workers killed', KILL_WORKER_AFTER_SLICES.length, workerKills),
      fact('relays killed', KILL_RELAY_AFTER_DELIVERIES.length, relayKills),
      fact('the key', 'done', end),
      fact('the last attempt', 'done', outcomes.at(-1) ?? 'none'),
      fact(
        'attempts that ended otherwise than by a lost worker',
        0,
        outcomes.slice(0, -1).filter((one) => one !== 'worker_lost').length,
      ),
      fact('documents', 1, facts.documents),
      fact('transfers in the journal', facts.payable, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];
  },
};

async function killWorkers(tools: DrillTools, stage: Stage, key: string, first: Child): Promise<number> {
  let worker = first;
  let kills = 0;
  for (const slices of KILL_WORKER_AFTER_SLICES) {
    const done = await until(
      `${slices} slices`,
      async () => {
        const counts = await sliceCounts(stage.db, key);
        return counts.total > 0 && counts.done >= slices ? counts : null;
      },
      60_000,
      5,
    );
    await worker.kill();
    kills += 1;
    tools.tell(`worker killed with ${done.done} of ${done.total} slices done`);
    worker = await stage.start('worker');
  }
  return kills;
}

async function killRelays(tools: DrillTools, stage: Stage, key: string): Promise<number> {
  let relay = await stage.start('relay', TERMS);
  let kills = 0;
  for (const wanted of KILL_RELAY_AFTER_DELIVERIES) {
    const delivered = await until(
      `${wanted} deliveries`,
      async () => {
        const count = await succeeded(stage, key);
        return count >= wanted ? count : null;
      },
      120_000,
      20,
    );
    await relay.kill();
    kills += 1;
    tools.tell(`relay killed with ${delivered} payouts recorded`);
    relay = await stage.start('relay', TERMS);
  }
  return kills;
}

async function succeeded(stage: Stage, key: string): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>(
    `select count(*)::int4 as n from onceper.outbox where key = $1 and state = 'succeeded'`,
    [key],
  );
  return rows[0]?.n ?? 0;
}
