/**
 * True of a row of `outbox` that waits for no other effect, or for one that has its fate: a condition of statements over
 * onceper.outbox. A row that waits for none costs the test of a null. A scalar subquery, because `not exists` may be planned
 * as a hash of the whole table; an old snapshot is harmless, since a fate never becomes none again.
 */
export const IS_ITS_TURN = `(outbox.waits_for is null
  or (select earlier.state from onceper.outbox earlier where earlier.number = outbox.waits_for)
       in ('succeeded', 'failed', 'returned'))`;

/** True of a row of the outbox whose effect moves money: of all but notices (outbox_webhook_moves_no_money). */
export const MOVES_MONEY = `strpos(number, ':XXX:') = 0`;
