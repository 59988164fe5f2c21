import { createHttpGateway } from '../gateway/http.ts';
import type { Tx } from '../kernel/sql.ts';
import { type Drill, type DrillTools, type Fact, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { sendsByNumber, setModes } from './gateway-control.ts';
import { delivered, effectStates, keyEnd } from './key-end.ts';
import { type OwnTemporal, startOwnTemporal } from './own-temporal.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

/** The counterparty's memory of a number, and what the relay is told of it. */
const WINDOW_MS = 4_000;
const TERMS = {
  ONCEPER_GATEWAY_KEY_WINDOW: `${WINDOW_MS}ms`,
  ONCEPER_GATEWAY_TIMEOUT: '1s',
  ONCEPER_GATEWAY_VISIBILITY_DELAY: '500ms',
};
const CONTROL = 'settlement:1999-01:m-control:GBP:payout';

/**
 * Both memories that others keep of a key end before the last retry: the counterparty forgets the numbers, and Temporal its
 * workflows. Half of the sends had acted and lost their answer, half had not; the relay died and comes back after the window.
 */
export const keyOutlived: Drill = {
  name: 'key-outlived',
  fault:
    'the counterparty forgets every number, and Temporal every workflow, before the relay comes back to unknown sends',
  guard: 'after the key window nothing is sent again: a look-up proves it, or a person decides',
  async run(tools) {
    const temporal = await startOwnTemporal(tools);
    try {
      return await drill(tools, temporal);
    } finally {
      await temporal.stop();
    }
  },
};

async function drill({ setStage, tell }: DrillTools, temporal: OwnTemporal): Promise<readonly Fact[]> {
  const stage = await setStage({ temporalAddress: temporal.address, namespace: 'default' });
  const sample = await importSample(stage, { merchants: 30, months: 1, subjectsPerSlice: 10 });
  await stage.openGateway();
  await setModes(stage.gatewayUrl, { forgetAfterMs: WINDOW_MS });
  const [worker] = await Promise.all([stage.start('worker'), sendControl(stage)]);
  await startRun(stage, sample);
  await keyEnd(stage, sample.key);
  const { acted, lost } = await loseFirstSends(stage, sample);
  tell(`${acted} sends acted and ${lost} did not, all unanswered; the relay is dead until the numbers are forgotten`);
  await until('the end of the key window', () => windowPassed(stage.db, sample.key), 30_000);
  const before = sendsByNumber(stage.journal);
  await setModes(stage.gatewayUrl, { forgetAfterMs: WINDOW_MS });
  await Promise.all([temporal.erase(), stage.start('relay', TERMS)]);
  await delivered(stage, sample.key);
  const started = await typed(`npx onceper run settlement --period ${sample.last} --json`, stage.environment);
  await sendControl(stage);
  await worker.stop();
  const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
  const sends = sendsByNumber(stage.journal);
  const more = (number: string) => (sends.get(number)?.sent ?? 0) - (before.get(number)?.sent ?? 0);
  const again = [...sends.keys()].filter((number) => number !== CONTROL && more(number) > 0);
  return [
    fact('a control number, sent before and after: acted on', 2, sends.get(CONTROL)?.acted ?? 0),
    fact('what became of the effects', expectedStates(acted, lost), await effectStates(stage, sample.key)),
    fact('numbers sent again after the window', 0, again.length),
    fact('transfers in the journal', acted, facts.transfers),
    fact('numbers executed twice', 0, facts.transfersTwice),
    fact('why the others wait for a person', 'key_window_passed', await reasons(stage.db, sample.key)),
    fact('Temporal still knows the key', 'no', (await knowsKey(stage, sample.key)) ? 'yes' : 'no'),
    fact('the key started again', 'duplicate', (JSON.parse(started.stdout) as { decision: string }).decision),
    fact('documents', 1, facts.documents),
  ];
}

function expectedStates(acted: number, lost: number): string {
  return `needs_attention ${lost}, succeeded ${acted}`;
}

/** A transfer of nobody's: that the same number acts twice shows that the counterparty has really forgotten it. */
async function sendControl(stage: Stage): Promise<void> {
  const gateway = createHttpGateway({ url: stage.gatewayUrl, keyWindowMs: 1, visibilityDelayMs: 1, timeoutMs: 5_000 });
  const body = { amount: '1', currency: 'GBP', destination: 'm-control', reference: CONTROL };
  await gateway.send(CONTROL, JSON.stringify(body));
  await gateway.close();
}

/** Every number's first send is unanswered, every second one after it has acted; then the relay dies. */
async function loseFirstSends(stage: Stage, sample: SampleMonths): Promise<{ acted: number; lost: number }> {
  const { rows } = await stage.db.query<{ number: string }>(
    'select number from onceper.outbox where key = $1 order by number',
    [sample.key],
  );
  const modes = rows.map(({ number }, at) => [
    number,
    at % 2 === 0 ? ['drop_after' as const] : ['drop_before' as const],
  ]);
  const numbers = Object.fromEntries(modes) as Record<string, ('drop_after' | 'drop_before')[]>;
  await setModes(stage.gatewayUrl, { forgetAfterMs: WINDOW_MS, numbers });
  const relay = await stage.start('relay', TERMS);
  await until('every send to be unanswered', async () => (await answeredOrLost(stage.db)) === rows.length, 30_000, 5);
  await relay.kill();
  const acted = Math.ceil(rows.length / 2);
  return { acted, lost: rows.length - acted };
}

/** Numbers whose send is over, one way or the other. */
async function answeredOrLost(tx: Tx): Promise<number> {
  const { rows } = await tx.query<{ n: number }>(
    `select count(distinct number)::int4 as n from onceper.delivery where step = 'send'`,
  );
  return rows[0]?.n ?? 0;
}

async function windowPassed(tx: Tx, key: string): Promise<boolean> {
  const { rows } = await tx.query<{ left: number }>(
    `select count(*)::int4 as left from onceper.outbox
      where key = $1 and first_sent_at > clock_timestamp() - $2 * interval '1 millisecond'`,
    [key, WINDOW_MS],
  );
  return rows[0]?.left === 0;
}

async function knowsKey(stage: Stage, key: string): Promise<boolean> {
  try {
    await stage.client.workflow.getHandle(key).describe();
    return true;
  } catch (error) {
    if (error instanceof Error && error.name === 'WorkflowNotFoundError') return false;
    throw error;
  }
}

async function reasons(tx: Tx, key: string): Promise<string> {
  const { rows } = await tx.query<{ codes: string | null }>(
    `select string_agg(distinct code, ', ') as codes from onceper.outbox where key = $1 and state = 'needs_attention'`,
    [key],
  );
  return rows[0]?.codes ?? 'none';
}
