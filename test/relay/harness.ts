import { createHttpGateway, type HttpGatewayOptions } from '../../src/gateway/http.ts';
import type { Gateway, Receivers } from '../../src/gateway/port.ts';
import { createReceivers } from '../../src/gateway/receivers.ts';
import type { EffectState } from '../../src/kernel/transitions.ts';
import type { RelayOptions, RelayServices } from '../../src/relay/plan.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { type TestLedger, testRegistry } from '../support/ledger-rows.ts';
import { TEST_SECRET } from '../support/receiver.ts';
import { waitFor } from '../support/wait.ts';

/** Short enough that a test does not wait, long enough for a loaded machine to answer in. */
export const FAST: RelayOptions = { backOff: { baseMs: 5, capMs: 40 }, leaseMs: 4_000, concurrency: 8 };

/** A gateway to a simulator, with the promises that a test is about. */
export function gatewayTo(url: string, options: Partial<HttpGatewayOptions> = {}): Gateway {
  return createHttpGateway({ url, keyWindowMs: 86_400_000, visibilityDelayMs: 0, timeoutMs: 1_000, ...options });
}

/** Receivers by their names and addresses, which all know the tests' secret. */
export function receiversAt(urls: Readonly<Record<string, string>>, timeoutMs = 1_000): Receivers {
  const known = Object.entries(urls).map(([name, url]) => ({ name, url, secrets: [TEST_SECRET] }));
  return createReceivers(known, { timeoutMs, networks: ['127.0.0.1'] });
}

export function servicesOf(ledger: Pick<TestLedger, 'db'>, gateway: Gateway, jobs = testRegistry()): RelayServices {
  return { db: ledger.db, jobs, gateway };
}

/** Relays again and again until no effect of the key needs the relay; returns the counts by state. */
export async function deliverAll(
  services: RelayServices,
  key: string,
  options: RelayOptions = FAST,
): Promise<Partial<Record<EffectState, number>>> {
  return waitFor(
    async () => {
      await relayOnce(services, options);
      const counts = await effectCounts(services.db, key);
      const left = ['pending', 'sending', 'unknown', 'pending_external'] as const;
      return left.every((state) => counts[state] === undefined) ? counts : null;
    },
    { what: `every effect of ${key} to be final`, timeoutMs: 25_000 },
  );
}

/** The deliveries of a number in the order of their fences, `step outcome code`. */
export async function deliveriesOf(ledger: Pick<TestLedger, 'db'>, number: string): Promise<string[]> {
  const { rows } = await ledger.db.query<{ delivery: string }>(
    `select concat_ws(' ', step, outcome, code) as delivery from onceper.delivery where number = $1 order by fence, step`,
    [number],
  );
  return rows.map((row) => row.delivery);
}

/** One effect's row as a test looks at it. */
export async function rowOf(ledger: Pick<TestLedger, 'db'>, number: string) {
  const { rows } = await ledger.db.query<{
    state: EffectState;
    attempts: number;
    code: string | null;
    counterpartyId: string | null;
    waitMs: number;
  }>(
    `select state, attempts, code, counterparty_id as "counterpartyId",
            (extract(epoch from due_at - clock_timestamp()) * 1000)::float8 as "waitMs"
       from onceper.outbox where number = $1`,
    [number],
  );
  const [row] = rows;
  if (row === undefined) throw new Error(`there is no ${number}`);
  return row;
}

/** Makes every effect of a key look `hours` older, and due now: the past as a test needs it. */
export async function age(ledger: Pick<TestLedger, 'db'>, key: string, hours: number): Promise<void> {
  await ledger.db.query(
    `update onceper.outbox
        set first_sent_at = first_sent_at - $2 * interval '1 hour', last_sent_at = last_sent_at - $2 * interval '1 hour',
            due_at = clock_timestamp()
      where key = $1`,
    [key, hours],
  );
}
