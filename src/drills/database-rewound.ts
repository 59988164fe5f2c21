import { actionByKey } from '../store/actions.ts';
import { readFreeze } from '../store/epoch.ts';
import { type Drill, fact } from './drill.ts';
import { executedTransfers, factsOf } from './facts.ts';
import { delivered } from './key-end.ts';
import { calledBeforeThaw, copyDatabase, kindOf, rememberedEpoch, replaceDatabase } from './older-copy.ts';
import { importSample } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

const MERCHANTS = 100;

/**
 * A copy of the database is taken before the month is settled, the month is settled and paid, and the copy is put in place of
 * the database: what a restore, or a failover that lost commits, does. The counterparty has paid everybody already.
 */
export const databaseRewound: Drill = {
  name: 'database-rewound',
  fault: 'the database is replaced by an older copy of itself after every merchant was paid',
  guard: 'a frozen database sends nothing until what the counterparty knows was derived again',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: MERCHANTS, months: 1, subjectsPerSlice: 25 });
    await stage.openGateway();
    const [worker, relay] = await Promise.all([stage.start('worker'), stage.start('relay')]);
    const copied = await until('the first look', () => rememberedEpoch(stage), 60_000);
    await copyDatabase(stage);
    await startRun(stage, sample);
    await delivered(stage, sample.key);
    await until('a look after the close', async () => (await rememberedEpoch(stage)) > copied, 60_000);
    const paid = executedTransfers(stage.journal, 'settlement:').executed;
    await Promise.all([worker.stop(), relay.stop()]);
    tell(`${paid} payouts are paid; the older copy is put in place now`);
    await replaceDatabase(stage);
    await Promise.all([stage.start('worker'), stage.start('relay')]);
    const freeze = await until('the freeze', () => readFreeze(stage.db), 90_000);
    tell(`frozen: ${freeze.reason}`);
    const reconciled = await typed('npx onceper doctor --reconcile-rewind --json', stage.environment);
    await until(
      'every payout to be known again',
      async () => (await actionByKey(stage.db, sample.key))?.delivering === false,
      90_000,
    );
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    return [
      fact('one command, to the end', 'thawed', kindOf(reconciled.stdout)),
      fact('calls to the counterparty while it was frozen', 0, await calledBeforeThaw(stage)),
      fact('transfers in the journal', paid, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
      fact('documents', 1, facts.documents),
      fact('effects looked up before anything was sent', facts.payable, await lookedUp(stage)),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];
  },
};

async function lookedUp(stage: Stage): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>(
    `select count(distinct number)::int4 as n from onceper.delivery
      where step = 'look_up' and number not in (select number from onceper.delivery where step = 'send')`,
  );
  return rows[0]?.n ?? 0;
}
