import { type EffectParts, parseEffectNumber } from '../../kernel/effect-number.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { Hold, Released } from '../holds.ts';
import { findHolds } from './holds.ts';
import { holdNextOpen } from './period-row.ts';

/** Who releases which payout's money, and why. */
interface Ask {
  readonly number: string;
  readonly actor: string;
  readonly reason: string;
}

/**
 * Releases what a payout has on hold: an assigned posting of the next open period after the payout's own, and the transfer
 * hold → payable, in the caller's transaction. Of any number at once one releases; the others wait for it and are told. No
 * seal passes before the commit. Throws OnceperError `period_missing`.
 */
export async function releaseHold(tx: Tx, ask: Ask): Promise<Released> {
  const standing = await standingOf(tx, ask.number);
  if (standing.kind !== 'held') return standing;
  const parts = parseEffectNumber(ask.number);
  const period = await holdNextOpen(tx, { key: ask.number, period: parseKey(parts.key).period });
  if (!(await storeRelease(tx, ask, { ...parts, amount: standing.hold.amount, period }))) {
    const moved = await standingOf(tx, ask.number);
    if (moved.kind !== 'held') return moved;
    throw new Error(`${ask.number}: a release that is not there kept another out`);
  }
  await postTransfer(tx, ask.number, parts);
  const [hold] = await findHolds(tx, [ask.number]);
  if (hold === undefined) throw new Error(`${ask.number}: the hold that was released is gone`);
  return { kind: 'released', hold };
}

async function standingOf(
  tx: Tx,
  number: string,
): Promise<Exclude<Released, { kind: 'released' }> | { readonly kind: 'held'; readonly hold: Hold }> {
  const [hold] = await findHolds(tx, [number]);
  if (hold === undefined) return { kind: 'not_held' };
  return { kind: hold.state === 'held' ? 'held' : 'already_released', hold };
}

/** False where the payout has a release already: stored before, or by another that we waited for. */
async function storeRelease(
  tx: Tx,
  { actor, reason }: Ask,
  of: Pick<EffectParts, 'key' | 'subject' | 'currency'> & { readonly amount: bigint; readonly period: string },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into settlement.assigned_posting (key, merchant, currency, kind, account, amount, period, actor, reason)
     values ($1, $2, $3, 'release', 'hold', $4, $5, $6, $7)
         on conflict (key, merchant, currency, kind) do nothing`,
    [of.key, of.subject, of.currency, of.amount, of.period, actor, reason],
  );
  return rowCount === 1;
}

async function postTransfer(tx: Tx, number: string, { key, subject, currency }: EffectParts): Promise<void> {
  const { rowCount } = await tx.query(
    `insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
     select key, merchant, currency, 'released', account, 'payable', amount
       from settlement.assigned_posting
      where key = $1 and merchant = $2 and currency = $3 and kind = 'release'`,
    [key, subject, currency],
  );
  if (rowCount !== 1) throw new Error(`${number}: ${rowCount} transfers were posted for its release`);
}
