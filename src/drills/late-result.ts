import type { Tx } from '../kernel/sql.ts';
import { type Drill, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { freeze } from './freeze.ts';
import { receivedPosts, setModes } from './gateway-control.ts';
import { delivered, effectStates, keyEnd } from './key-end.ts';
import { loggedEvents } from './log-events.ts';
import { importSample } from './sample-month.ts';
import { startRun } from './start-run.ts';
import { until } from './until.ts';

/** A call may take a second, so a taken effect is the relay's for two calls and their margins: six seconds. */
/** The counterparty thinks for longer than a busy machine needs to stop the relay, and for less than the relay waits. */
const TERMS = { ONCEPER_GATEWAY_TIMEOUT: '3s', ONCEPER_GATEWAY_VISIBILITY_DELAY: '200ms' };

/**
 * A relay is stopped while the counterparty is thinking about all of its sends. The answers come, and nobody reads them; the
 * lease ends, another relay looks the numbers up and records what it finds. Then the first wakes up with its results.
 */
export const lateResult: Drill = {
  name: 'late-result',
  fault:
    'the gateway answers after the lease of the relay that asked has ended and another relay has recorded the outcome',
  guard: 'an outcome is recorded by the fence under which the effect was taken, and each take raises it',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: 16, months: 1, subjectsPerSlice: 8 });
    await stage.openGateway();
    await stage.start('worker');
    await startRun(stage, sample);
    await keyEnd(stage, sample.key);
    await setModes(stage.gatewayUrl, { mix: [{ mode: 'slow', percent: 100 }], delayMs: 2_500 });
    const first = await stage.start('relay', { ...TERMS, ONCEPER_LOG_LEVEL: 'debug' });
    const payable = await effects(stage.db, sample.key);
    const received = async () => (await receivedPosts(stage.gatewayUrl)) === payable;
    await until('every send to arrive', received, 30_000, 5);
    const wake = freeze(first);
    tell(
      `relay ${first.pid} is stopped with ${payable} sends on their way; their answers come, and it does not read them`,
    );
    const second = await stage.start('relay', TERMS);
    await delivered(stage, sample.key);
    const before = await effectStates(stage, sample.key);
    tell(`relay ${second.pid} has recorded: ${before}; the first wakes up now`);
    wake();
    const late = await until('the woken relay to come with its results', () => lateOutcomes(payable), 30_000);
    await first.stop();
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    return [
      fact('sends that were answered while nobody read', facts.payable, payable),
      fact('results that the woken relay recorded', 0, late.recorded),
      fact('results that it lost to the other relay', payable, late.lost),
      fact('what became of the effects', `succeeded ${facts.payable}`, before),
      fact('what the woken relay made of that', before, await effectStates(stage, sample.key)),
      fact('transfers in the journal', facts.payable, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];

    async function lateOutcomes(expected: number): Promise<{ recorded: number; lost: number } | null> {
      const [recorded, lost] = [
        loggedEvents(first, 'effect_recorded').length,
        loggedEvents(first, 'effect_lost').length,
      ];
      return recorded + lost >= expected ? { recorded, lost } : null;
    }
  },
};

async function effects(tx: Tx, key: string): Promise<number> {
  const { rows } = await tx.query<{ n: number }>('select count(*)::int4 as n from onceper.outbox where key = $1', [
    key,
  ]);
  return rows[0]?.n ?? 0;
}
