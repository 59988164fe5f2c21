import type { Mode } from '../gateway/simulator/settings.ts';
import type { Tx } from '../kernel/sql.ts';
import { type Drill, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { sendsByNumber, setModes } from './gateway-control.ts';
import { delivered, effectStates, keyEnd } from './key-end.ts';
import { importSample } from './sample-month.ts';
import { startRun } from './start-run.ts';
import { until } from './until.ts';

/** What the counterparty does to the first send of each number, in turn: three in which it acts, five in which it does not. */
const FIRST_TRIES: readonly Mode[] = [
  'drop_after',
  'cut',
  'error_after',
  'drop_before',
  'error_before',
  'busy',
  'in_flight',
  'slow',
];

/**
 * The record is committed and its effect fails: the month is done, its document says what is to be paid, and no first send
 * comes through. Nobody listens at first; then each number's first try fails in one of eight ways.
 */
export const recordWithoutEffect: Drill = {
  name: 'record-without-effect',
  fault:
    'after the month is recorded nobody listens, and then the first send of every number fails in one of eight ways',
  guard: 'an effect keeps the number and the bytes that it was recorded with, over every try',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: 48, months: 1, subjectsPerSlice: 12 });
    const gateway = await stage.openGateway();
    await stage.start('worker');
    await startRun(stage, sample);
    await keyEnd(stage, sample.key);
    await gateway.stop();
    await stage.start('relay', { ONCEPER_GATEWAY_TIMEOUT: '2s', ONCEPER_GATEWAY_VISIBILITY_DELAY: '500ms' });
    await until('every effect to be tried in vain', () => allTried(stage.db, sample.key), 30_000);
    const unheard = sendsByNumber(stage.journal).size;
    tell(`the month is done; ${await effectStates(stage, sample.key)} after sends that nobody heard`);
    await stage.openGateway({ every: [{ mode: 'error_before', n: 1 }] });
    const numbers = await numbersOf(stage.db, sample.key);
    await setModes(stage.gatewayUrl, { numbers: triesOf(numbers), delayMs: 3_000 });
    await delivered(stage, sample.key);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    const sends = sendsByNumber(stage.journal);
    return [
      fact('transfers while nobody listened', 0, unheard),
      fact('what became of the effects', `succeeded ${facts.payable}`, await effectStates(stage, sample.key)),
      fact('transfers in the journal', facts.payable, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
      fact('numbers at the counterparty that nobody recorded', 0, foreign(sends.keys(), numbers)),
      fact('most different bodies sent under one number', 1, await mostBodies(stage.db)),
      fact('documents', 1, facts.documents),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];
  },
};

function triesOf(numbers: readonly string[]): Record<string, Mode[]> {
  return Object.fromEntries(
    numbers.map((number, at) => [number, [FIRST_TRIES[at % FIRST_TRIES.length] ?? 'ok', 'ok']]),
  );
}

function foreign(sent: Iterable<string>, recorded: readonly string[]): number {
  return [...sent].filter((number) => !recorded.includes(number)).length;
}

async function allTried(tx: Tx, key: string): Promise<boolean> {
  const { rows } = await tx.query<{ untried: number }>(
    `select count(*)::int4 as untried from onceper.outbox where key = $1 and (attempts = 0 or state <> 'pending')`,
    [key],
  );
  return rows[0]?.untried === 0;
}

async function numbersOf(tx: Tx, key: string): Promise<string[]> {
  const { rows } = await tx.query<{ number: string }>(
    'select number from onceper.outbox where key = $1 order by number',
    [key],
  );
  return rows.map((row) => row.number);
}

async function mostBodies(tx: Tx): Promise<number> {
  const { rows } = await tx.query<{ most: number }>(
    `select coalesce(max(bodies), 0)::int4 as most
       from (select count(distinct request_hash) as bodies from onceper.delivery where step = 'send' group by number) n`,
  );
  return rows[0]?.most ?? 0;
}
