import { pino } from 'pino';
import { visibleJson } from '../kernel/visible.ts';
import { type Event, levelOf } from './events.ts';

/** Writes one typed event as one JSON line. */
export type Log = (event: Event) => void;

/**
 * Logs to `write`. Each line is an event of the catalogue with the process's name and release; a character that a terminal would
 * obey is written out, since lines hold words of others.
 */
export function createLog(options: {
  name: string;
  release: string;
  level: string;
  write: (line: string) => void;
}): Log {
  const logger = pino(
    {
      level: options.level,
      base: { process: options.name, release: options.release },
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: 'event',
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => options.write(visibleJson(line)) },
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
