import { OnceperError } from '../kernel/error.ts';

/** One row of `doctor`. `warn` works and deserves a look; `fail` needs somebody. */
export interface Check {
  readonly check: string;
  readonly state: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  readonly remedy: string | null;
  /** True on the rows that say whether a server can be reached at all. */
  readonly isServer: boolean;
}

export function ok(check: string, detail: string): Check {
  return { check, state: 'ok', detail, remedy: null, isServer: false };
}

export function warn(check: string, detail: string, remedy: string): Check {
  return { check, state: 'warn', detail, remedy, isServer: false };
}

export function fail(check: string, detail: string, remedy: string): Check {
  return { check, state: 'fail', detail, remedy, isServer: false };
}

/** A row that fails because something was thrown on the way to it. */
function faulted(check: string, thrown: unknown): Check {
  if (thrown instanceof OnceperError) return fail(check, thrown.message, thrown.remedy);
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return fail(check, message, 'read the log of the server at this moment');
}

/** Runs a check; what it throws becomes its own failing row, so that one fault never hides the others. */
export async function checked(check: string, run: () => Promise<Check | readonly Check[]>): Promise<readonly Check[]> {
  try {
    const found = await run();
    return 'check' in found ? [found] : found;
  } catch (thrown) {
    return [faulted(check, thrown)];
  }
}
