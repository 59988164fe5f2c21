import { type EffectParts, parseEffectNumber } from '../../kernel/effect-number.ts';
import { OnceperError } from '../../kernel/error.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { Hold, Released } from '../holds.ts';
import { findHolds } from './holds.ts';

/** Who releases which payout's money, and why. */
interface Ask {
  readonly number: string;
  readonly actor: string;
  readonly reason: string;
}

/**
 * Releases what a payout has on hold: an assigned posting of the next open period after the payout's own, and the transfer
 * hold → payable, in the caller's transaction. Of any number at once one releases; the others wait for it and are told. It
 * is placed as an import's rows are: tentatively and without a lock, then for good. Throws OnceperError `period_missing`.
 */
export async function releaseHold(tx: Tx, ask: Ask): Promise<Released> {
  const standing = await standingOf(tx, ask.number);
  if (standing.kind !== 'held') return standing;
  const parts = parseEffectNumber(ask.number);
  const tentative = await nextOpenPeriod(tx, ask.number, parseKey(parts.key).period);
  if (!(await storeRelease(tx, ask, { ...parts, amount: standing.hold.amount, period: tentative }))) {
    const moved = await standingOf(tx, ask.number);
    if (moved.kind !== 'held') return moved;
    throw new Error(`${ask.number}: a release that is not there kept another out`);
  }
  await placeForGood(tx, ask.number, parts, tentative);
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

async function nextOpenPeriod(tx: Tx, number: string, after: string): Promise<string> {
  const { rows } = await tx.query<{ period: string }>(
    `select n.period from settlement.period n
      where n.state = 'open' and n.starts > (select p.starts from settlement.period p where p.period = $1)
      order by n.starts limit 1`,
    [after],
  );
  const [row] = rows;
  if (row !== undefined) return row.period;
  throw noPeriod(number);
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

/**
 * Takes the period rows `for share`, ascending, from the tentative one on, and so waits for a seal under way; where it was
 * sealed meanwhile the release moves to the next open one. No state in the locking `where`, as in import/place.ts: it would
 * drop the row of a period that was sealed while we waited. Then posts the transfer. No seal passes before the commit.
 */
async function placeForGood(
  tx: Tx,
  number: string,
  { key, subject, currency }: EffectParts,
  tentative: string,
): Promise<void> {
  const { rowCount } = await tx.query(
    `with p as materialized (
       select period, starts, state from settlement.period
        where starts >= (select starts from settlement.period where period = $4)
        order by starts for share
     ), target as materialized (
       select period from p where state = 'open' order by starts limit 1
     ), moved as (
       update settlement.assigned_posting a set period = t.period
         from target t
        where a.key = $1 and a.merchant = $2 and a.currency = $3 and a.kind = 'release' and a.period <> t.period
     )
     insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
     select a.key, a.merchant, a.currency, 'released', a.account, 'payable', a.amount
       from settlement.assigned_posting a cross join target
      where a.key = $1 and a.merchant = $2 and a.currency = $3 and a.kind = 'release'`,
    [key, subject, currency, tentative],
  );
  if (rowCount !== 1) throw noPeriod(number);
}

function noPeriod(number: string): OnceperError {
  return new OnceperError({
    code: 'period_missing',
    message: 'no period of the settlement job takes the release',
    remedy:
      'the period of today and the next one are made before a release: look for a hand that changed settlement.period',
    at: number,
  });
}
