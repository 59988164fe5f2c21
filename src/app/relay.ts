import type { Registry } from '../jobs/registry.ts';
import type { Identity } from '../kernel/rewind.ts';
import type { Event } from '../observability/events.ts';
import type { Log } from '../observability/log.ts';
import { noCounts, type RelayCounts, type RelayEvent } from '../relay/events.ts';
import type { RelayOptions } from '../relay/plan.ts';
import { runRelay } from '../relay/relay.ts';
import { clockOf } from '../store/database.ts';
import type { Config } from './config.ts';
import { openGateway } from './gateway.ts';
import { runProcess } from './process.ts';
import { openReceivers } from './receivers.ts';
import { connectTemporal, createDatabase } from './services.ts';
import { rememberedIdentity } from './watch.ts';

/**
 * `onceper relay`: delivers until SIGTERM, gives back what has not begun, finishes and records the calls in flight, and
 * returns what it did. Throws what openGateway and openReceivers throw, and
 * OnceperError `gateway_terms`, `database_unreachable`, `start_timed_out`.
 */
export async function runRelayProcess(config: Config, jobs: Registry): Promise<RelayCounts> {
  const receivers = openReceivers(config);
  const { gateway, address, connections } = openGateway(config);
  const counts = await runProcess(config, 'relay', async ({ log, draining, start, atEnd }) => {
    const db = createDatabase(config, log, { name: 'onceper relay', max: 4 });
    atEnd('PostgreSQL', () => db.close());
    atEnd('the gateway', () => gateway.close());
    atEnd('the receivers', () => receivers?.close());
    // A database that can't be reached now is a mistake of the start; later it is an outage, which the relay sits out.
    await start('PostgreSQL', () => clockOf(db));
    const remembered = await start('Temporal’s memory', () => askOutside(config, log));
    const told = config.receivers.addresses.map(({ name }) => name);
    log({ event: 'relay_started', gateway: address, receivers: told });
    const services = { db, jobs, gateway, ...(receivers === undefined ? {} : { receivers }) };
    const onEvent = (event: RelayEvent) => logged(log, event);
    const signal = draining;
    return runRelay(services, { ...relayOptions(config), signal, concurrency: connections, remembered, onEvent });
  });
  return counts ?? noCounts();
}

/** What the configuration says of how a relay delivers. */
export function relayOptions({ gateway, delivery, release }: Config): RelayOptions {
  const { callsPerSecond, probe } = gateway;
  const { payouts, notices, noticesPerSecond } = delivery;
  return { ...payouts, notices, noticesPerSecond, callsPerSecond, probe, release };
}

/** A relay must not wait for Temporal: a first send that could be a second one is looked up, whoever remembers what. */
const MEMORY_WITHIN_MS = 5_000;

/** Who Temporal remembers the database to be, asked once, before the first take; null where it can't be asked now. */
async function askOutside(config: Config, log: Log): Promise<Identity | null> {
  try {
    const client = await connectTemporal(config, MEMORY_WITHIN_MS);
    try {
      return await rememberedIdentity(client);
    } finally {
      await client.connection.close();
    }
  } catch (error) {
    log({ event: 'memory_not_asked', message: error instanceof Error ? error.message : String(error) });
    return null;
  }
}

/** The relay's events in the catalogue's words; what merely passes through its hands is not logged. */
function logged(log: Log, event: RelayEvent): void {
  const entry = entryOf(event);
  if (entry !== null) log(entry);
}

function entryOf(event: RelayEvent): Event | null {
  switch (event.kind) {
    case 'taken':
    case 'released':
    case 'unrecorded':
      return { event: 'relay_batch', counts: { [event.kind]: event.count } };
    case 'recorded': {
      const { number, job, key, fence, state, code } = event;
      return { event: 'effect_recorded', number, job, key, fence, state, code };
    }
    case 'lost': {
      const { number, job, key, fence } = event;
      return { event: 'effect_lost', number, job, key, fence };
    }
    case 'record_failed':
    case 'fault': {
      const step = event.kind === 'fault' ? event.step : 'record';
      return { event: 'relay_fault', step, code: event.code, message: event.message };
    }
    case 'cleared':
      return { event: 'key_delivered', key: event.key };
    case 'paused': {
      const { destination, code, status } = event;
      return { event: 'destination_paused', destination, code, status };
    }
    case 'resumed':
      return { event: 'destination_resumed', destination: event.destination };
    case 'frozen':
      return { event: 'delivery_frozen', reason: event.reason };
    case 'sent':
    case 'looked_up':
    case 'idle':
    case 'draining':
      return null;
  }
}
