import { runRelay } from '../../src/relay/relay.ts';
import { openDatabase } from '../../src/store/database.ts';
import { gatewayTo } from '../relay/harness.ts';
import { testRegistry } from '../support/ledger-rows.ts';

/** A relay in a process of its own until SIGTERM, or until it is killed: `tsx payout-relay.ts DATABASE GATEWAY`. */
const [, , databaseUrl = '', gatewayUrl = ''] = process.argv;
const db = openDatabase({ url: databaseUrl, name: 'payout relay', max: 4 });
const gateway = gatewayTo(gatewayUrl, { timeoutMs: 2_000 });
const stop = new AbortController();
process.once('SIGTERM', () => stop.abort());
await runRelay(
  { db, jobs: testRegistry(), gateway },
  { signal: stop.signal, backOff: { baseMs: 50, capMs: 1_000 }, leaseMs: 6_000 },
);
await gateway.close();
await db.close();
