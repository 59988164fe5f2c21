import { createHttpGateway } from '../gateway/http.ts';
import type { Registry } from '../jobs/registry.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Event } from '../observability/events.ts';
import type { Log } from '../observability/log.ts';
import type { RelayCounts, RelayEvent } from '../relay/events.ts';
import { runRelay } from '../relay/relay.ts';
import { clockOf } from '../store/database.ts';
import type { Config } from './config.ts';
import { drainOnSignal } from './drain.ts';
import { createDatabase, createProcessLog } from './services.ts';

/**
 * `onceper relay`: delivers until SIGTERM, gives back what has not begun, finishes and records the calls in flight, and
 * returns what it did. Throws OnceperError `gateway_unset`, `gateway_url`, `gateway_terms`, `database_unreachable`.
 */
export async function runRelayProcess(config: Config, jobs: Registry): Promise<RelayCounts> {
  const log = createProcessLog(config, 'relay');
  const { url, ...terms } = requireGateway(config);
  const signal = drainOnSignal(log, config.drainGraceMs);
  const gateway = createHttpGateway({ url, ...terms });
  const db = createDatabase(config, log, { name: 'onceper relay', max: 4 });
  try {
    // A database that can't be reached now is a mistake of the start; later it is an outage, which the relay sits out.
    await clockOf(db);
    log({ event: 'relay_started', gateway: url });
    const services = { db, jobs, gateway };
    const concurrency = terms.connections;
    return await runRelay(services, { signal, concurrency, onEvent: (event) => logged(log, event) });
  } finally {
    await gateway.close();
    await db.close();
    log({ event: 'stopped', code: 0 });
  }
}

/** The gateway's terms; throws OnceperError `gateway_unset` where no address is known. */
export function requireGateway({ gateway }: Config): Config['gateway'] & { readonly url: string } {
  const { url } = gateway;
  if (url !== null) return { ...gateway, url };
  throw new OnceperError({
    code: 'gateway_unset',
    message: 'no gateway: ONCEPER_GATEWAY_URL is not set',
    remedy: 'npx onceper gateway starts a simulator and prints its address; set ONCEPER_GATEWAY_URL to it',
    at: 'ONCEPER_GATEWAY_URL',
  });
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
    case 'sent':
    case 'looked_up':
    case 'idle':
    case 'draining':
      return null;
  }
}
