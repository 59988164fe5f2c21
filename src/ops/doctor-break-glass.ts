import type { Tx } from '../kernel/sql.ts';
import { breakGlassUses } from '../store/audit-read.ts';
import { type Check, ok, warn } from './check.ts';

const DAYS = 30;

/** Whether somebody acted past the process that acts for people: allowed, and looked at afterwards. No row without the right to read. */
export async function checkBreakGlass(tx: Tx): Promise<readonly Check[]> {
  const uses = await breakGlassUses(tx, DAYS);
  if (uses === null) return [];
  if (uses.count === 0) return [ok('break_glass', `not broken in ${DAYS} days`)];
  return [
    warn(
      'break_glass',
      `broken ${uses.count} times in ${DAYS} days, last at ${uses.last}, by ${uses.actors.join(', ')}`,
      'npx onceper audit list --verb break-glass',
    ),
  ];
}
