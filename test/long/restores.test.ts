import { expect, test } from 'vitest';
import { Draw } from '../../src/jobs/settlement/sample/draw.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { deliverAll, FAST, gatewayTo, servicesOf } from '../relay/harness.ts';
import { forced } from '../support/forced.ts';
import { insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';

const SEEDS = Number(process.env['RESTORES_SEEDS'] ?? '60');
const PAYOUTS = 24;
const ROUNDS = 12;
/** So short that a sequence can wait for its end, and long enough that it begins inside of it. */
const WINDOW_MS = 1_000;
const PASTE = `state, fence, attempts, lookups, first_sent_at, last_sent_at, due_at, counterparty_id, code, final_at`;

const ledger = useTestLedger();
const bank = useTestBank();

/** Keeps the effects of a key as they stand, as a backup does. */
async function backUp(key: string, name: number): Promise<void> {
  await ledger.db.query(
    `create table if not exists public.backup as select 0 as name, number, ${PASTE} from onceper.outbox limit 0`,
  );
  await ledger.db.query(`insert into public.backup select $2, number, ${PASTE} from onceper.outbox where key = $1`, [
    key,
    name,
  ]);
}

/** Puts them back, with the postings of then; leases that they held have ended meanwhile. */
async function restore(key: string, name: number): Promise<void> {
  const columns = PASTE.split(', ').filter((column) => column !== 'due_at');
  await forced(
    ledger.db,
    `update onceper.outbox o set ${columns.map((column) => `${column} = b.${column}`).join(', ')}, due_at = clock_timestamp()
       from public.backup b where b.number = o.number and b.name = $2 and o.key = $1`,
    [key, name],
  );
  await ledger.db.query(
    `delete from public.fate f using onceper.outbox o where o.number = f.number and o.key = $1 and o.final_at is null`,
    [key],
  );
  await ledger.db.query('update onceper.action set delivering = true where key = $1', [key]);
}

/** Waits until the counterparty has forgotten every number that was sent so far. */
async function windowPassed(key: string): Promise<void> {
  await waitFor(
    async () => {
      const { rowCount } = await ledger.db.query(
        `select from onceper.outbox where key = $1 and last_sent_at > clock_timestamp() - $2 * interval '1 millisecond' limit 1`,
        [key, WINDOW_MS],
      );
      return rowCount === 0;
    },
    { what: 'the end of the key window' },
  );
}

test(`whatever is restored when, over ${SEEDS} seeds: no number is paid twice, and none is called paid that is not`, {
  timeout: SEEDS * 30_000,
}, async () => {
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const draw = new Draw(20_261_203, seed);
    const key = await ledger.freshKey(draw.percent(30) ? 1 : 0);
    const numbers = await insertEffects(ledger.db, key, PAYOUTS);
    const simulator = await bank.start({
      seed,
      forgetAfterMs: WINDOW_MS,
      mix: [
        { mode: 'drop_after', percent: draw.between(0, 40) },
        { mode: 'drop_before', percent: draw.between(0, 20) },
        { mode: 'busy', percent: draw.between(0, 20) },
        { mode: 'error_after', percent: draw.between(0, 10) },
      ],
      retryAfterSeconds: 0,
      lookUpErrors: draw.between(0, 30),
    });
    const gateway = gatewayTo(simulator.url, { keyWindowMs: WINDOW_MS, timeoutMs: 300 });
    const services = servicesOf(ledger, gateway);
    await backUp(key, seed * 1_000);
    const backups = [seed * 1_000];
    const forgotten = draw.between(2, ROUNDS);
    for (let round = 1; round <= ROUNDS; round += 1) {
      const batch = draw.between(4, PAYOUTS);
      const relays = Array.from({ length: draw.between(1, 2) }, () => relayOnce(services, { ...FAST, batch }));
      await Promise.all(relays);
      if (draw.percent(40)) {
        backups.push(seed * 1_000 + round);
        await backUp(key, seed * 1_000 + round);
      }
      if (round === forgotten) await windowPassed(key);
      if (round === forgotten || draw.percent(30))
        await restore(key, backups[draw.between(0, backups.length - 1)] ?? 0);
    }
    const states = await deliverAll(services, key);
    const paid = bank.executed();
    const twice = numbers.filter((number) => (paid.get(number) ?? 0) > 1);
    expect({ seed, twice }).toEqual({ seed, twice: [] });
    const once = numbers.filter((number) => paid.get(number) === 1).length;
    expect({ seed, ...(await effectCounts(ledger.db, key)) }).toMatchObject({ seed, succeeded: once });
    expect({ seed, all: (states.succeeded ?? 0) + (states.needs_attention ?? 0) }).toEqual({ seed, all: PAYOUTS });
    await gateway.close();
    await simulator.stop();
  }
});
