import { CommanderError } from 'commander';
import { OnceperError } from '../kernel/error.ts';
import { FAULTS_OF_CONNECTING } from '../store/fault.ts';
import type { Config } from './config.ts';
import { temporalUnreachable } from './services.ts';
import { oneLine } from './terminal.ts';

/** Whatever was thrown, as an error with a code and a remedy; its text is one line. */
export function faultOf(thrown: unknown): OnceperError {
  if (thrown instanceof OnceperError) return thrown;
  if (thrown instanceof CommanderError) return usageFault(thrown);
  return new OnceperError({
    code: 'unexpected',
    message: thrown instanceof Error ? thrown.message : String(thrown),
    remedy: 'type it again with ONCEPER_LOG_LEVEL=debug to see where, and report it with that output',
    cause: thrown,
  });
}

/** Standard output did not take the answer: whoever reads it has less than was said. */
export function outputRefused(refusal: Error): OnceperError {
  return new OnceperError({
    code: 'output_refused',
    message: `standard output can't be written: ${refusal.message}`,
    remedy: 'what the command did is done; free the disk or name another file, and ask again',
    cause: refusal,
  });
}

/** A mistake in how the command was typed, found by us rather than by commander. */
export function usage(message: string, at: string | null, remedy: string): OnceperError {
  return new OnceperError({ code: 'usage', message, at, remedy });
}

/** What commander found, in our words: what is wrong, which word it is, and what was probably meant. */
function usageFault(error: CommanderError): OnceperError {
  const [said = '', ...hints] = error.message.replace(/^error: /, '').split('\n');
  const hint = hints.join(' ').replace(/^\((.*)\)$/, '$1');
  return usage(
    said,
    /'([^']+)'/.exec(said)?.[1] ?? null,
    hint === '' ? 'npx onceper --help' : `${hint} npx onceper --help`,
  );
}

const UNAVAILABLE = 14;
const DEADLINE_EXCEEDED = 4;

/**
 * What Temporal's client threw while a command worked: no server, no namespace, or the error itself. Names and numbers are
 * matched, not classes: the client wraps them, and gRPC's own have none.
 */
export function temporalFault(thrown: unknown, config: Config): unknown {
  if (thrown instanceof OnceperError) return thrown;
  const { namespace, connectionOptions } = config.temporal;
  for (let error = thrown; error instanceof Error; error = error.cause) {
    if (error.name === 'NamespaceNotFoundError') {
      return new OnceperError({
        code: 'no_namespace',
        message: `Temporal has no namespace ${namespace}`,
        remedy: `npx temporal operator namespace create --namespace ${namespace}, or set TEMPORAL_NAMESPACE`,
        at: namespace,
        cause: thrown,
      });
    }
    const code = 'code' in error ? error.code : null;
    if (code === UNAVAILABLE || code === DEADLINE_EXCEEDED) {
      return temporalUnreachable(connectionOptions.address ?? '', thrown);
    }
  }
  return thrown;
}

/** An error of connecting to the database with the place that was tried, user and password left out. */
export function databaseFault(thrown: unknown, session: { readonly config: Pick<Config, 'databaseUrl'> }): unknown {
  if (!(thrown instanceof OnceperError) || thrown.at !== null || !FAULTS_OF_CONNECTING.has(thrown.code)) return thrown;
  const { databaseUrl } = session.config;
  if (databaseUrl === null) return thrown;
  const { code, message, remedy } = thrown;
  const { host, pathname } = new URL(databaseUrl);
  return new OnceperError({ code, message, remedy, at: `${host}${pathname}`, cause: thrown });
}

/** One line for a person: `code: message (at) — remedy`. */
export function faultLine(fault: OnceperError): string {
  const at = fault.at === null ? '' : ` (${fault.at})`;
  const line = `${fault.code}: ${fault.message.trim().replace(/\.$/, '')}${at} — ${fault.remedy}`;
  return oneLine(line.replaceAll(/\s*\n\s*/g, ' '));
}

/** The document that `--json` prints instead of an answer. */
export function faultDocument(fault: OnceperError) {
  const { code, message, remedy, at } = fault;
  return { error: { code, message, remedy, at } };
}
