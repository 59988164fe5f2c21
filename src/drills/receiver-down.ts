import { businessKey } from '../kernel/key.ts';
import { effectCounts } from '../store/outbox-read.ts';
import { type Drill, type Fact, fact } from './drill.ts';
import { executedTransfers, factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { type DrillReceiver, openReceiver } from './receiver.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { until } from './until.ts';

const MERCHANTS = 100;

/**
 * Two months are settled while the receiver of webhooks first keeps a message without a word and then refuses it; the relay
 * that waits for its answer is killed. Then the receiver is mended.
 */
export const receiverDown: Drill = {
  name: 'receiver-down',
  fault: 'a receiver of webhooks hangs, its relay is killed -9, and then it answers 503 until two months are settled',
  guard: 'a receiver has a lane of its own, and a month is not told before the one that it waits for has its fate',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: MERCHANTS, months: 2, subjectsPerSlice: 50 });
    const [first, second] = sample.months.map((month) => businessKey('settlement', month));
    let isMended = false;
    const receiver = await openReceiver((id, before) => {
      if (isMended || !id.startsWith(`${first}:`)) return 204;
      return before === 0 ? null : 503;
    });
    try {
      const environment = environmentOf(receiver);
      await stage.openGateway();
      const [, relay] = await Promise.all([stage.start('worker', environment), stage.start('relay', environment)]);
      for (const month of sample.months) await settle(stage, { ...sample, last: month });
      await until('the first message', async () => receiver.heard.length > 0, 60_000);
      tell(`${executedTransfers(stage.journal, 'settlement:').executed} payouts are paid, and nobody has been told`);
      const watchers = await watched(stage, [first, second]);
      await relay.kill();
      await stage.start('relay', environment);
      await until(
        'a second message',
        async () => receiver.heard.filter(({ id }) => id.startsWith(`${first}:`)).length > 2,
        90_000,
      );
      isMended = true;
      for (const key of [first, second]) await delivered(stage, key ?? '', 120_000);
      return [
        ...(await moneyFacts(stage, sample)),
        fact('watchers that showed delivered meanwhile', 2, watchers),
        ...heardFacts(receiver, [first, second]),
      ];
    } finally {
      await receiver.stop();
    }
  },
};

function environmentOf({ url, secret }: DrillReceiver): Record<string, string> {
  return {
    ONCEPER_RECEIVERS: `accounting=${url}`,
    ONCEPER_RECEIVER_NETWORKS: new URL(url).hostname,
    ONCEPER_RECEIVER_SECRETS: JSON.stringify({ accounting: secret }),
    // A killed relay's lease is twice this and four seconds.
    ONCEPER_GATEWAY_TIMEOUT: '2s',
  };
}

/** Settles a month and waits until its payouts are paid; nobody waits for the receiver. */
async function settle(stage: Stage, sample: SampleMonths): Promise<void> {
  const key = businessKey('settlement', sample.last);
  await startRun(stage, sample);
  await keyEnd(stage, key);
  const left = ['pending', 'sending', 'unknown'] as const;
  await until(
    `the payouts of ${key}`,
    async () => {
      const counts = await effectCounts(stage.db, key);
      return left.every((state) => counts[state] === undefined);
    },
    60_000,
  );
}

/** How many of the keys' watchers have ended, because all money has its fate. */
async function watched(stage: Stage, keys: readonly (string | undefined)[]): Promise<number> {
  for (const key of keys) await stage.client.workflow.getHandle(`delivery:${key}`).result();
  return keys.length;
}

async function moneyFacts(stage: Stage, sample: SampleMonths): Promise<Fact[]> {
  const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
  return [
    fact('transfers in the journal', facts.payable, facts.transfers),
    fact('numbers executed twice', 0, executedTransfers(stage.journal, 'settlement:').twice),
    ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
  ];
}

function heardFacts({ heard }: DrillReceiver, keys: readonly (string | undefined)[]): Fact[] {
  const acknowledged = heard.filter(({ status }) => status === 204).map(({ id }) => id);
  const repeats = heard.length - new Set(heard.map(({ id }) => id)).size;
  return [
    fact(
      'messages that the library of Standard Webhooks refuses',
      0,
      heard.filter(({ isGenuine }) => !isGenuine).length,
    ),
    fact('messages in the order acknowledged', keys.map(numberOf).join(', '), acknowledged.join(', ')),
    fact('repeats', 'some', repeats > 0 ? 'some' : 'none'),
    fact('different bodies under one id', 0, new Set(heard.map(({ id, body }) => id + body)).size - keys.length),
  ];
}

function numberOf(key: string | undefined): string {
  return `${key}:accounting:XXX:completed`;
}
