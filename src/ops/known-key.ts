import { periodCalendar, storedRule } from '../jobs/rule.ts';
import { OnceperError } from '../kernel/error.ts';
import { type KeyParts, parseKey } from '../kernel/key.ts';
import { parsePeriod } from '../kernel/period.ts';
import type { Tx } from '../kernel/sql.ts';
import { isKnownKey, keysNear } from '../store/near-keys.ts';
import { activeRule } from '../store/rules.ts';

/**
 * Takes a key apart and makes sure that the ledger knows it. Throws OnceperError `malformed_key`, `malformed_period` where the
 * job has no such period, or `unknown_key` naming the nearest known ones, so that a slip of the pen is seen at once.
 */
export async function knownKey(tx: Tx, key: string): Promise<KeyParts> {
  const parts = parseKey(key);
  if (await isKnownKey(tx, key)) return parts;
  const stored = await activeRule(tx, parts.job);
  if (stored !== null) parsePeriod(parts.period, periodCalendar(storedRule(stored)));
  const near = await keysNear(tx, key);
  const found = near.length === 0 ? 'the ledger knows no key yet' : `the nearest known keys are ${near.join(', ')}`;
  throw new OnceperError({
    code: 'unknown_key',
    message: `no run was ever opened for ${key}`,
    remedy: `${found}; npx onceper periods ${parts.job} lists what is expected`,
    at: key,
  });
}
