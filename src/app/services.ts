import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { Client, Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { createRegistry, type Registry } from '../jobs/registry.ts';
import { createSettlementJob } from '../jobs/settlement/settlement.ts';
import { OnceperError } from '../kernel/error.ts';
import { createLog, type Log } from '../observability/log.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { type Config, requireDatabaseUrl } from './config.ts';
import { standardStreams } from './streams.ts';

/** The jobs of this deployment. A new job is added here and nowhere else. */
export function createJobs(): Registry {
  return createRegistry([createSettlementJob()]);
}

/** A pool under a name that pg_stat_activity shows; a connection lost while idle is logged and replaced. */
export function createDatabase(config: Config, log: Log, options: { name: string; max: number }): Database {
  return openDatabase({
    url: requireDatabaseUrl(config),
    ...options,
    onIdleError: (error) => log({ event: 'database_idle_error', message: error.message }),
  });
}

/** A log for one process of this release, on standard error: standard output belongs to what a command was asked for. */
export function createProcessLog(config: Config, name: string): Log {
  const { write } = standardStreams().err;
  return createLog({ name, release: config.release, level: config.logLevel, write });
}

/** How long a person waits for one answer of Temporal's, its tries included; who waits for an end asks the ledger, which is quick. */
const ANSWER_WITHIN_MS = 15_000;

/** The SDK's calls have no deadline of their own: a server that took the connection and hangs would hang the command. */
function answerWithin(ms: number): Interceptor {
  return (options, nextCall) =>
    new InterceptingCall(nextCall({ ...options, deadline: options.deadline ?? Date.now() + ms }));
}

/**
 * Temporal's client, each of whose calls is over within `withinMs`; throws OnceperError `temporal_unreachable` naming the
 * address. The caller closes the connection.
 */
export async function connectTemporal(config: Pick<Config, 'temporal'>, withinMs = ANSWER_WITHIN_MS): Promise<Client> {
  const { connectionOptions, namespace } = config.temporal;
  try {
    const connection = await Connection.connect({
      ...connectionOptions,
      connectTimeout: '5 seconds',
      interceptors: [answerWithin(withinMs), makeGrpcRetryInterceptor(defaultGrpcRetryOptions())],
    });
    return new Client({ connection, namespace });
  } catch (error) {
    throw temporalUnreachable(connectionOptions.address ?? '', error);
  }
}

/** One sentence for every way in which Temporal can't be reached. */
export function temporalUnreachable(address: string, cause: unknown): OnceperError {
  return new OnceperError({
    code: 'temporal_unreachable',
    message: `Temporal can't be reached at ${address}`,
    remedy: 'start it (npx onceper up --detach) or point TEMPORAL_ADDRESS at the server that runs',
    at: address,
    cause,
  });
}
