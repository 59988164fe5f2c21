import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';

const PAYOUTS = 20_000;
/** At these shares of the payouts both relays are killed, and started again. */
const KILLS = [0.15, 0.4, 0.65];

const ledger = useTestLedger();
const bank = useTestBank();
const relays = new Set<ChildProcess>();

afterEach(() => {
  for (const relay of relays) relay.kill('SIGKILL');
});

function startRelay(gatewayUrl: string): ChildProcess {
  const script = path.join(import.meta.dirname, 'payout-relay.ts');
  const relay = spawn(process.execPath, ['--import', 'tsx', script, ledger.url, gatewayUrl], { stdio: 'inherit' });
  relays.add(relay);
  return relay;
}

async function ended(relay: ChildProcess, signal: 'SIGKILL' | 'SIGTERM'): Promise<unknown> {
  const exit = once(relay, 'exit');
  relay.kill(signal);
  relays.delete(relay);
  return (await exit)[signal === 'SIGKILL' ? 1 : 0];
}

test('20,000 payouts through two relays that are killed three times, past a gateway that fails 15 in 100: each is paid once', async () => {
  const key = await ledger.freshKey();
  const numbers = await insertEffects(ledger.db, key, PAYOUTS);
  const simulator = await bank.start({
    mix: [
      { mode: 'drop_after', percent: 5 },
      { mode: 'error_before', percent: 2.5 },
      { mode: 'error_after', percent: 2.5 },
      { mode: 'busy', percent: 5 },
    ],
    retryAfterSeconds: 1,
  });
  const succeeded = async () => (await effectCounts(ledger.db, key)).succeeded ?? 0;
  const reached = (count: number) =>
    waitFor(async () => (await succeeded()) >= count, { what: `${count} payouts`, timeoutMs: 300_000, everyMs: 100 });
  const began = performance.now();
  let pair = [startRelay(simulator.url), startRelay(simulator.url)];
  for (const share of KILLS) {
    await reached(PAYOUTS * share);
    expect(await Promise.all(pair.map((relay) => ended(relay, 'SIGKILL')))).toEqual(['SIGKILL', 'SIGKILL']);
    pair = [startRelay(simulator.url), startRelay(simulator.url)];
  }
  await reached(PAYOUTS);
  const seconds = (performance.now() - began) / 1_000;
  expect(await Promise.all(pair.map((relay) => ended(relay, 'SIGTERM')))).toEqual([0, 0]);

  const executed = bank.executed();
  const doubles = [...executed].filter(([, times]) => times > 1);
  const lost = numbers.filter((number) => !executed.has(number));
  const { rows } = await ledger.db.query<{ attempts: number; lookUps: number; most: number; posted: number }>(
    `select sum(attempts)::int4 as attempts, sum(lookups)::int4 as "lookUps", max(attempts)::int4 as most,
            (select count(*)::int4 from public.fate where state = 'succeeded') as posted
       from onceper.outbox where key = $1`,
    [key],
  );
  const [sums] = rows;
  process.stdout.write(
    `${executed.size} transfers, ${doubles.length} double, ${lost.length} lost, in ${seconds.toFixed(1)} s; ` +
      `${sums?.attempts} sends begun (${sums?.most} at most of one), ${sums?.lookUps} look-ups, ` +
      `${simulator.counts().posts} requests at the gateway\n`,
  );
  expect({ doubles, lost }).toEqual({ doubles: [], lost: [] });
  expect(await effectCounts(ledger.db, key)).toEqual({ succeeded: PAYOUTS });
  expect(sums?.posted).toBe(PAYOUTS);
}, 600_000);
