import { OnceperError } from '../kernel/error.ts';
import type { RunningServers } from './server-state.ts';

/** Where work goes: the servers that `up` started, or those that variables name. */
export interface Addresses {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
}

/**
 * The addresses that hold now: a variable goes before a server of ours. Throws `address_unknown` where the running
 * servers lack one, having been started with a variable that is not set here.
 */
export function addressesOf(
  given: { readonly databaseUrl: string | null; readonly temporalAddress: string | null },
  servers: RunningServers,
): Addresses {
  const databaseUrl = given.databaseUrl ?? servers.postgres?.url;
  const temporalAddress = given.temporalAddress ?? servers.temporal?.address;
  if (databaseUrl === undefined) throw unknownAddress('PostgreSQL', 'DATABASE_URL');
  if (temporalAddress === undefined) throw unknownAddress('Temporal', 'TEMPORAL_ADDRESS');
  return { databaseUrl, temporalAddress };
}

function unknownAddress(server: string, variable: string): OnceperError {
  return new OnceperError({
    code: 'address_unknown',
    message: `the servers that run were started with ${variable}, which is not set here, so that ${server} can't be found`,
    remedy: `set ${variable} here too, or npx onceper down and start again without it`,
    at: variable,
  });
}
