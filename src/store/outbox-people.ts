import type { Instant, Tx } from '../kernel/sql.ts';
import type { EffectState } from '../kernel/transitions.ts';
import { moneyOf, type ShownEffect } from './outbox-read.ts';
import type { ToldEffect } from './webhooks.ts';

/** An effect in a list across keys. */
export interface ListedEffect extends ShownEffect {
  readonly key: string;
  readonly code: string | null;
}

/** One effect with everything that is known of its delivery. The body is what every send repeats, byte for byte. */
export interface EffectRecord extends ListedEffect {
  readonly destination: string;
  /** The effect that must have its fate before this one is sent. */
  readonly waitsFor: string | null;
  readonly body: string;
  readonly fence: bigint;
  readonly lookUps: number;
  readonly firstSentAt: Instant | null;
  readonly lastSentAt: Instant | null;
  readonly dueAt: Instant | null;
  readonly finalAt: Instant | null;
}

/** One call to the counterparty, as it is shown. */
export interface ShownDelivery {
  readonly fence: bigint;
  readonly step: 'send' | 'look_up';
  readonly at: Instant;
  readonly outcome: string;
  readonly status: number | null;
  readonly code: string | null;
  readonly answer: string | null;
}

/** What a person did to an effect. */
export interface EffectAct {
  readonly fence: bigint;
  readonly verb: 'retry' | 'resolve';
  readonly from: EffectState;
  readonly to: EffectState;
  readonly actor: string;
  readonly reason: string;
  readonly at: Instant;
}

/** One page of the effects in some states, of one key or of all, by number. Walks the outbox: for a person's question. */
export async function effectsInStates(
  tx: Tx,
  ask: {
    readonly states: readonly EffectState[];
    readonly key: string | null;
    readonly after: string | null;
    readonly limit: number;
  },
): Promise<{ readonly effects: readonly ListedEffect[]; readonly next: string | null }> {
  const { rows } = await tx.query<Omit<ListedEffect, 'currency' | 'amount'> & { body: string }>(
    `select number, key, subject, body, state, code, attempts, counterparty_id as "counterpartyId"
       from onceper.outbox
      where state = any ($1::text[]) and ($2::text is null or key = $2) and number > $3
      order by number limit $4`,
    [ask.states, ask.key, ask.after ?? '', ask.limit + 1],
  );
  const effects = rows.slice(0, ask.limit).map(({ body, ...row }) => ({ ...row, ...moneyOf(body) }));
  return { effects, next: rows.length > ask.limit ? (effects.at(-1)?.number ?? null) : null };
}

/** One effect, or null where the outbox has no such number. */
export async function effectRecord(tx: Tx, number: string): Promise<EffectRecord | null> {
  const { rows } = await tx.query<Omit<EffectRecord, 'currency' | 'amount'>>(
    `select number, key, subject, destination, waits_for as "waitsFor", body, state, code, fence, attempts, lookups as "lookUps",
            counterparty_id as "counterpartyId", first_sent_at as "firstSentAt", last_sent_at as "lastSentAt",
            case when state in ('pending', 'sending', 'unknown', 'pending_external') then due_at end as "dueAt",
            final_at as "finalAt"
       from onceper.outbox where number = $1`,
    [number],
  );
  const [row] = rows;
  return row === undefined ? null : { ...row, ...moneyOf(row.body) };
}

/** The calls to the counterparty about a number, oldest first; old ones of finished effects may have been cleaned. */
export async function deliveriesOf(tx: Tx, number: string): Promise<ShownDelivery[]> {
  const { rows } = await tx.query<ShownDelivery>(
    `select fence, step, at, outcome, status, code, answer from onceper.delivery where number = $1 order by at, fence, step`,
    [number],
  );
  return rows;
}

/** What people did to an effect, oldest first. */
export async function actsOn(tx: Tx, number: string): Promise<EffectAct[]> {
  const { rows } = await tx.query<EffectAct>(
    `select fence, verb, from_state as "from", to_state as "to", actor, reason, at
       from onceper.outbox_act where number = $1 order by fence`,
    [number],
  );
  return rows;
}

/** Records a person's act under the fence that it raised. */
export async function recordAct(tx: Tx, number: string, act: Omit<EffectAct, 'at'>): Promise<void> {
  await tx.query(
    `insert into onceper.outbox_act (number, fence, verb, from_state, to_state, actor, reason)
     values ($1, $2, $3, $4, $5, $6, $7)`,
    [number, act.fence, act.verb, act.from, act.to, act.actor, act.reason],
  );
}

/**
 * Makes a locked effect due now in `state`, under a raised fence; its look-ups are counted anew, its sends never. Returns
 * the fence, null where state or fence were others.
 */
export async function makeDue(
  tx: Tx,
  effect: Pick<ToldEffect, 'number' | 'fence' | 'state'>,
  state: EffectState,
): Promise<bigint | null> {
  const { rows } = await tx.query<{ fence: bigint }>(
    `update onceper.outbox
        set state = $4, fence = fence + 1, lookups = 0, code = null, due_at = clock_timestamp()
      where number = $1 and fence = $2 and state = $3
     returning fence`,
    [effect.number, effect.fence, effect.state, state],
  );
  return rows[0]?.fence ?? null;
}

/**
 * Marks a done key as delivering, for whoever gives the relay work in it. The row is written whatever it says, for its lock:
 * a relay that clears it at this moment looks only after we commit. False where the key is not done: close will mark it.
 */
export async function markDelivering(tx: Tx, key: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.action set delivering = true where key = $1 and result is not null`,
    [key],
  );
  return rowCount === 1;
}
