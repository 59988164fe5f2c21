import { Pool } from 'undici';
import type { Database } from '../src/store/database.ts';
import { CONNECTIONS, gatewayTo, insertKey, relayRate, spread, withLedgerAndSink } from './relay-ledger.ts';

/**
 * `npx tsx bench/relay.ts [EFFECTS] [PAIRS]`: what the relay delivers a second, against what the same http adapter sends a
 * second to the same sink without a database; in one run, alternating. The figure is relay to adapter; undici's pool, which
 * neither bounds a call nor checks its answer, stands beside it. Rows are settlements', with their postings.
 */
const effects = Number(process.argv[2] ?? '20000');
const pairs = Number(process.argv[3] ?? '7');

await withLedgerAndSink(async (db, url) => {
  const toPlain: number[] = [];
  const toAdapter: number[] = [];
  // The first pair warms all ways up and does not count.
  for (let pair = 0; pair <= pairs; pair += 1) {
    const key = await insertKey(db, `${2000 + pair}-09`, effects);
    const bodies = await bodiesOf(db, key);
    const plain = await plainRate(url, bodies);
    const adapter = await adapterRate(url, bodies);
    const relay = await relayRate(db, url, key, effects);
    const shown = `pool ${plain.toFixed(0)}/s, adapter ${adapter.toFixed(0)}/s, relay ${relay.toFixed(0)}/s`;
    process.stdout.write(`${pair === 0 ? 'warm-up' : `pair ${pair}`}: ${shown}\n`);
    if (pair === 0) continue;
    toPlain.push(relay / plain);
    toAdapter.push(relay / adapter);
  }
  const over = `over ${pairs} pairs of ${effects}`;
  process.stdout.write(
    `relay to adapter: ${spread(toAdapter)} ${over}\nrelay to pool:    ${spread(toPlain)} ${over}\n`,
  );
});

async function bodiesOf(db: Database, key: string): Promise<{ readonly number: string; readonly body: string }[]> {
  const { rows } = await db.query<{ number: string; body: string }>(
    'select number, body from onceper.outbox where key = $1',
    [key],
  );
  return rows;
}

/** The client by itself: undici's pool as the http adapter sets it up, each answer read whole. */
async function plainRate(url: string, bodies: { readonly number: string; readonly body: string }[]): Promise<number> {
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 });
  const began = performance.now();
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let one = bodies[next++]; one !== undefined; one = bodies[next++]) {
      const { body } = await pool.request({
        method: 'POST',
        path: '/v1/transfers',
        headers: { 'content-type': 'application/json', 'idempotency-key': one.number },
        body: one.body,
      });
      await body.text();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sender));
  const seconds = (performance.now() - began) / 1_000;
  await pool.close();
  return bodies.length / seconds;
}

/** The http adapter by itself: the client, a bound on each whole call, and the answer checked. */
async function adapterRate(url: string, bodies: { readonly number: string; readonly body: string }[]): Promise<number> {
  const gateway = gatewayTo(url);
  const began = performance.now();
  let next = 0;
  const sender = async (): Promise<void> => {
    for (let one = bodies[next++]; one !== undefined; one = bodies[next++]) {
      const { kind } = await gateway.send(one.number, one.body);
      if (kind !== 'accepted') throw new Error(`the sink answered ${kind}`);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, sender));
  const seconds = (performance.now() - began) / 1_000;
  await gateway.close();
  return bodies.length / seconds;
}
