import { type Drill, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { importSample } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';

const MERCHANTS = 500;

/** The counterparty acts on every transfer and drops every fifth answer: nobody may conclude that it did not act. */
export const droppedAnswers: Drill = {
  name: 'dropped-answers',
  fault: 'the gateway drops every fifth answer after acting',
  guard: 'an effect whose send had no answer is looked up under its number before anything else',
  async run({ setStage }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: MERCHANTS, months: 1, subjectsPerSlice: 100 });
    await stage.openGateway({ every: [{ mode: 'drop_after', n: 5 }] });
    await Promise.all([stage.start('worker'), stage.start('relay')]);
    await startRun(stage, sample);
    await keyEnd(stage, sample.key);
    await delivered(stage, sample.key, 120_000);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    const { unknown, resolved } = await unknowns(stage, sample.key);
    return [
      fact('numbers that were unknown', 'some', unknown > 0 ? 'some' : 'none'),
      fact('of these, resolved by look-up', unknown, resolved),
      fact('documents', 1, facts.documents),
      fact('transfers in the journal', facts.payable, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];
  },
};

/** Numbers whose send had no answer, and those of them that a look-up then found. */
async function unknowns(stage: Stage, key: string): Promise<{ unknown: number; resolved: number }> {
  const { rows } = await stage.db.query<{ unknown: number; resolved: number }>(
    `select count(distinct d.number) filter (where d.step = 'send' and d.outcome = 'unknown')::int4 as unknown,
            count(distinct d.number) filter (where d.step = 'look_up' and d.outcome = 'found' and o.state = 'succeeded')::int4 as resolved
       from onceper.delivery d
       join onceper.outbox o on o.number = d.number
      where o.key = $1`,
    [key],
  );
  return rows[0] ?? { unknown: 0, resolved: 0 };
}
