import { expect, test } from 'vitest';
import { relayOnce } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const bank = useTestBank();

test('a counterparty that forgets numbers after 2 s, and a relay that is away for 5: found, or put before a person, never sent again', async () => {
  const key = await ledger.freshKey();
  const numbers = await insertEffects(ledger.db, key, 60);
  const simulator = await bank.start({
    mix: [
      { mode: 'drop_after', percent: 50 },
      { mode: 'drop_before', percent: 50 },
    ],
    forgetAfterMs: 2_000,
  });
  const gateway = gatewayTo(simulator.url, { keyWindowMs: 2_000, timeoutMs: 1_000 });
  expect(await relayOnce(servicesOf(ledger, gateway), FAST)).toMatchObject({ sent: 60, unknown: 60 });
  const acted = simulator.counts().executed;
  expect(acted).toBeGreaterThan(10);
  await waitFor(
    async () => {
      const { rows } = await ledger.db.query<{ away: boolean }>(
        `select min(clock_timestamp() - first_sent_at) >= interval '5 seconds' as away from onceper.outbox where key = $1`,
        [key],
      );
      return rows[0]?.away;
    },
    { what: 'five seconds without a relay' },
  );
  const back = await relayOnce(servicesOf(ledger, gateway), FAST);
  expect(back).toMatchObject({ looked_up: 60, sent: 0, succeeded: acted, needs_attention: 60 - acted });
  expect(await effectCounts(ledger.db, key)).toEqual({ needs_attention: 60 - acted, succeeded: acted });
  expect(simulator.counts()).toMatchObject({ posts: numbers.length, executed: acted, replayed: 0 });
  await gateway.close();
});
