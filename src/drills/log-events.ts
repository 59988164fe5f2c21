import { readFileSync } from 'node:fs';
import type { Child } from './children.ts';

/** An event of a process's log, as it was written. */
export type LoggedEvent = Readonly<Record<string, unknown>>;

/** The events of one name that a process has logged so far, oldest first. */
export function loggedEvents(child: Child, event: string): readonly LoggedEvent[] {
  const lines = readFileSync(child.logFile, 'utf8').split('\n');
  return lines.flatMap((line) => {
    const parsed = parsedLine(line);
    return parsed['event'] === event ? [parsed] : [];
  });
}

/** One line of a log; what is no JSON, such as a last line that is still being written, has no field. */
export function parsedLine(line: string): LoggedEvent {
  try {
    return JSON.parse(line) as LoggedEvent;
  } catch {
    return {};
  }
}
