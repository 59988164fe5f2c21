import { pino } from 'pino';
import { type Event, levelOf } from './events.ts';

/** Writes one typed event as one JSON line. */
export type Log = (event: Event) => void;

/**
 * Logs to standard error, or to `write` in a test: standard output belongs to what a command was asked for. Each line is an
 * event of the catalogue with the process's name and release.
 */
export function createLog(options: {
  name: string;
  release: string;
  level: string;
  write?: (line: string) => void;
}): Log {
  const { write } = options;
  const destination = write === undefined ? pino.destination({ fd: 2, sync: true }) : { write };
  const logger = pino(
    {
      level: options.level,
      base: { process: options.name, release: options.release },
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'event',
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  return (event) => {
    const { event: name, ...fields } = event;
    logger[levelOf(event)](printable(fields), name);
  };
}

function printable(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'bigint' ? value.toString() : value]),
  );
}
