import { businessKey } from '../kernel/key.ts';
import type { Tx } from '../kernel/sql.ts';
import { readFreeze, readIdentity } from '../store/epoch.ts';
import type { Child } from './children.ts';
import { type Drill, type DrillTools, type Fact, fact } from './drill.ts';
import { executedTransfers } from './facts.ts';
import { receivedLookUps, sendsByNumber } from './gateway-control.ts';
import { delivered, effectStates, keyEnd } from './key-end.ts';
import { calledBeforeThaw, copyDatabase, kindOf, rememberedEpoch, replaceDatabase } from './older-copy.ts';
import { type OwnTemporal, startOwnTemporal } from './own-temporal.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { type Typed, typed } from './typed.ts';
import { until } from './until.ts';

/** The counterparty's memory of a number, and what the relays are told of it. */
const WINDOW_MS = 4_000;
const TERMS = {
  ONCEPER_GATEWAY_KEY_WINDOW: `${WINDOW_MS}ms`,
  ONCEPER_GATEWAY_TIMEOUT: '1s',
  ONCEPER_GATEWAY_VISIBILITY_DELAY: '500ms',
};

/**
 * The backup knows one month as closed and unpaid, and nothing of the next. Both are paid, and the counterparty has forgotten
 * their numbers, when it is put in place under two relays and a worker that go on running.
 */
export const restoredLate: Drill = {
  name: 'restored-late',
  fault: 'a backup older than the key window is restored under relays that run, after everybody was paid',
  guard: 'a relay recognises a database that fell behind what it has seen, and sends nothing until it was compared',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const paid = await payTwoMonths(stage);
    tell(`${paid.executed} payouts are paid and forgotten; the older copy is put in place now, under the relays`);
    await replaceDatabase(stage);
    const { reason } = await until('the freeze', () => readFreeze(stage.db), 90_000);
    const reconciled = await reconcile(stage);
    for (const key of paid.keys) await delivered(stage, key);
    return [
      fact('why it is frozen', 'an older copy of the database', reason.split(': ').at(-1) ?? ''),
      fact('calls to the counterparty before it was compared', 0, await calledBeforeThaw(stage)),
      fact('one command, to the end', 'thawed', kindOf(reconciled.stdout)),
      ...(await factsAfter(stage, paid)),
    ];
  },
};

/** The same where nobody remembers anything: Temporal's data is gone as well, and worker and relays are started anew. */
export const restoredForgotten: Drill = {
  name: 'restored-forgotten',
  fault: "a backup older than the key window is restored, Temporal's data is erased, and every process starts anew",
  guard: 'a number that may have been used longer ago than the key window is looked up before its first send',
  async run(tools) {
    const temporal = await startOwnTemporal(tools);
    try {
      return await forgotten(tools, temporal);
    } finally {
      await temporal.stop();
    }
  },
};

async function forgotten({ setStage, tell }: DrillTools, temporal: OwnTemporal): Promise<readonly Fact[]> {
  const stage = await setStage({ temporalAddress: temporal.address, namespace: 'default' });
  const paid = await payTwoMonths(stage);
  await Promise.all(paid.processes.map((process) => process.stop()));
  tell(`${paid.executed} payouts are paid and forgotten, and nobody remembers: the older copy is put in place now`);
  await Promise.all([replaceDatabase(stage), temporal.erase()]);
  await Promise.all([stage.start('worker'), ...startRelays(stage)]);
  const [first = ''] = paid.keys;
  await delivered(stage, first);
  const wasFrozen = (await readFreeze(stage.db)) !== null;
  const states = await effectStates(stage, first);
  const reconciled = await reconcile(stage);
  for (const key of paid.keys) await delivered(stage, key);
  return [
    fact('frozen by anybody’s memory', 'no', wasFrozen ? 'yes' : 'no'),
    fact('what relays made of the month that looked unpaid', `succeeded ${paid.payouts[0]}`, states),
    fact('one command, to the end', 'thawed', kindOf(reconciled.stdout)),
    ...(await factsAfter(stage, paid)),
  ];
}

/** It ends 6 where a number was paid twice, which the facts then show. */
function reconcile(stage: Stage): Promise<Typed> {
  return typed('npx onceper doctor --reconcile-rewind --json', { ...stage.environment, ...TERMS }, [0, 6]);
}

interface Paid {
  readonly sample: SampleMonths;
  readonly keys: readonly string[];
  readonly processes: readonly Child[];
  /** How many payouts each month has, and how many transfers were executed, sent and looked up in all. */
  readonly payouts: readonly number[];
  readonly executed: number;
  readonly sent: number;
  readonly lookUps: number;
}

/** Closes the first month, takes the backup, pays it, settles and pays the second, and waits until the numbers are forgotten. */
async function payTwoMonths(stage: Stage): Promise<Paid> {
  const sample = await importSample(stage, { merchants: 60, months: 2, subjectsPerSlice: 20 });
  await stage.openGateway({ forgetAfterMs: WINDOW_MS });
  const worker = await stage.start('worker');
  await until('the first look', () => rememberedEpoch(stage), 60_000);
  const keys = sample.months.map((month) => businessKey('settlement', month));
  const [first = '', second = ''] = keys;
  await startRun(stage, sample, sample.months[0]);
  await keyEnd(stage, first);
  await copyDatabase(stage);
  const copied = Number((await readIdentity(stage.db)).epoch);
  const relays = await Promise.all(startRelays(stage));
  await startRun(stage, sample);
  await keyEnd(stage, second);
  await until('a look after the close', async () => (await rememberedEpoch(stage)) > copied, 60_000);
  for (const key of keys) await delivered(stage, key);
  await until('the end of the key window', () => windowPassed(stage.db), 30_000);
  const payouts = keys.map((key) => executedTransfers(stage.journal, `${key}:`).executed);
  const { executed } = executedTransfers(stage.journal, 'settlement:');
  const lookUps = await receivedLookUps(stage.gatewayUrl);
  return { sample, keys, processes: [worker, ...relays], payouts, executed, sent: sentSoFar(stage), lookUps };
}

function startRelays(stage: Stage): readonly Promise<Child>[] {
  return [stage.start('relay', TERMS), stage.start('relay', TERMS)];
}

async function factsAfter(stage: Stage, paid: Paid): Promise<readonly Fact[]> {
  const { executed, twice } = executedTransfers(stage.journal, 'settlement:');
  const { rows } = await stage.db.query<{ documents: number; lost: number }>(
    `select (select count(*)::int4 from onceper.action where state = 'done') as documents,
            (select count(*)::int4 from onceper.outbox where state <> 'succeeded') as lost`,
  );
  const gaps = await paid.sample.registry.get('settlement').ledgerGaps(stage.db);
  return [
    fact('numbers executed twice', 0, twice),
    fact('transfers in the journal', paid.executed, executed),
    fact('numbers sent again', 0, sentSoFar(stage) - paid.sent),
    fact('look-ups, one a payout', paid.executed, (await receivedLookUps(stage.gatewayUrl)) - paid.lookUps),
    fact('documents', 2, rows[0]?.documents ?? 0),
    fact('payouts that are not known as paid', 0, rows[0]?.lost ?? -1),
    ...Object.entries(gaps).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap.toString())),
  ];
}

function sentSoFar(stage: Stage): number {
  return [...sendsByNumber(stage.journal).values()].reduce((sum, { sent }) => sum + sent, 0);
}

async function windowPassed(tx: Tx): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from onceper.outbox where last_sent_at > clock_timestamp() - $1 * interval '1 millisecond' limit 1`,
    [WINDOW_MS],
  );
  return rowCount === 0;
}
