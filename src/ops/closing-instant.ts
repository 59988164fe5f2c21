import { nominalTimeOf } from '../jobs/due.ts';
import type { JobRule } from '../jobs/rule.ts';
import { codeOf } from '../kernel/error.ts';
import type { Instant } from '../kernel/sql.ts';

/** The schedule's instant that closes a period, or null where a schedule that fires less often than periods end has none. */
export function closingInstant(rule: JobRule, period: string): Instant | null {
  try {
    return nominalTimeOf(rule, period);
  } catch (error) {
    if (codeOf(error) === 'no_closing_instant') return null;
    throw error;
  }
}
