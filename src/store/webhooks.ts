import type { Verdict } from '../kernel/delivery.ts';
import { movesMoney } from '../kernel/effect-number.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import type { EffectState } from '../kernel/transitions.ts';
import type { FinalEffect, Settle } from './outbox-record.ts';

/** A message as it was received: `body` is its text, byte for byte. */
export interface Webhook {
  readonly id: string;
  readonly type: string;
  readonly number: string | null;
  readonly body: string;
}

/** What became of a message. `stale` said nothing new, `ignored` is not ours, `attention` waits for a person. */
export type WebhookState = 'stored' | 'applied' | 'stale' | 'ignored' | 'attention';

/** A message as it is shown; its body holds amounts and stays in the database. */
export interface ShownWebhook {
  readonly id: string;
  readonly type: string;
  readonly number: string | null;
  readonly state: WebhookState;
  readonly code: string | null;
  /** In words what it says otherwise than the effect, amounts in minor units; null where nothing differs. */
  readonly detail: string | null;
  readonly receivedAt: Instant;
}

/** An effect under the lock of the transaction that applies a webhook to it. */
export interface ToldEffect {
  readonly number: string;
  readonly job: string;
  readonly key: string;
  readonly subject: string;
  readonly state: EffectState;
  readonly fence: bigint;
  readonly body: string;
  readonly code: string | null;
  readonly counterpartyId: string | null;
}

/** Stores a message under its id; false where it is stored already, whatever became of it. */
export async function storeWebhook(tx: Tx, webhook: Webhook): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into onceper.webhook (id, type, number, body) values ($1, $2, $3, $4) on conflict (id) do nothing`,
    [webhook.id, webhook.type, webhook.number, webhook.body],
  );
  return rowCount === 1;
}

/** Ids of stored messages that are due to be applied, oldest first. */
export async function dueWebhooks(tx: Tx, limit: number): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from onceper.webhook where state = 'stored' and due_at <= clock_timestamp() order by due_at limit $1`,
    [limit],
  );
  return rows.map((row) => row.id);
}

/** Locks a stored message; null where it is decided already, or another process decides it now. */
export async function lockWebhook(tx: Tx, id: string): Promise<Webhook | null> {
  const { rows } = await tx.query<Webhook>(
    `select id, type, number, body from onceper.webhook where id = $1 and state = 'stored' for update skip locked`,
    [id],
  );
  return rows[0] ?? null;
}

/** Locks the effect of a number, waiting for a relay's take or record; null where the outbox has no such number. */
export async function lockToldEffect(tx: Tx, number: string): Promise<ToldEffect | null> {
  const { rows } = await tx.query<ToldEffect>(
    `select o.number, a.job, o.key, o.subject, o.state, o.fence, o.body, o.code, o.counterparty_id as "counterpartyId"
       from onceper.outbox o join onceper.action a on a.key = o.key
      where o.number = $1 for update of o`,
    [number],
  );
  return rows[0] ?? null;
}

/** Decides a locked message. */
export async function decideWebhook(
  tx: Tx,
  id: string,
  decision: {
    readonly state: Exclude<WebhookState, 'stored'>;
    readonly code: string | null;
    readonly detail: string | null;
  },
): Promise<void> {
  await tx.query(
    `update onceper.webhook
        set state = $2, code = $3, detail = $4, decided_at = clock_timestamp() where id = $1 and state = 'stored'`,
    [id, decision.state, decision.code, decision.detail],
  );
}

/**
 * Counts a try to apply that failed, and makes the message due again after `delayMs`, or puts it before a person with `code`
 * when it has been tried `maxTries` times: a poison message never holds the others up.
 */
export async function deferWebhook(
  tx: Tx,
  id: string,
  failed: { readonly code: string; readonly delayMs: number; readonly maxTries: number },
): Promise<void> {
  await tx.query(
    `update onceper.webhook
        set tries = tries + 1, code = $2,
            due_at = clock_timestamp() + $3 * interval '1 millisecond' * 2 ^ least(tries, 10),
            state = case when tries + 1 >= $4 then 'attention' else 'stored' end,
            decided_at = case when tries + 1 >= $4 then clock_timestamp() end
      where id = $1 and state = 'stored'`,
    [id, failed.code, failed.delayMs, failed.maxTries],
  );
}

/**
 * Moves a locked effect to its verdict and raises its fence, so that a relay in flight affects 0 rows and re-reads; lets the
 * job post the fate, where the effect moves money, in the caller's transaction. A returned transfer whose success was never
 * heard of passes through `succeeded`, with both postings. An effect that was never sent and becomes `unknown` counts as sent
 * now, or no look-up could be timed. Returns the fence after it, null where state or fence were others.
 */
export async function moveToldEffect(
  tx: Tx,
  effect: ToldEffect,
  verdict: Verdict,
  settle: Settle,
): Promise<bigint | null> {
  const fence = await writeThrough(tx, effect, verdict);
  if (fence === null || !movesMoney(effect.number)) return fence;
  const { number, key, subject } = effect;
  const fate = (state: FinalEffect['state']) => settle(tx, [{ number, key, subject, state }]);
  const { state } = verdict;
  if (state === 'failed') await fate('failed');
  if (state === 'succeeded' || (state === 'returned' && effect.state !== 'succeeded')) await fate('succeeded');
  if (state === 'returned') await fate('returned');
  return fence;
}

/** Writes a verdict; what was returned has succeeded first, for the row as for the books. */
async function writeThrough(tx: Tx, effect: ToldEffect, verdict: Verdict): Promise<bigint | null> {
  if (verdict.state !== 'returned' || effect.state === 'succeeded') return writeVerdict(tx, effect, verdict);
  const fence = await writeVerdict(tx, effect, { ...verdict, state: 'succeeded' });
  return fence === null ? null : writeVerdict(tx, { ...effect, state: 'succeeded', fence }, verdict);
}

async function writeVerdict(tx: Tx, effect: ToldEffect, verdict: Verdict): Promise<bigint | null> {
  const { rows } = await tx.query<{ fence: bigint }>(
    `update onceper.outbox
        set state = $4, fence = fence + 1, code = $5, counterparty_id = coalesce($6, counterparty_id),
            due_at = clock_timestamp() + $7 * interval '1 millisecond',
            final_at = case when $4 in ('succeeded', 'failed', 'returned') then coalesce(final_at, clock_timestamp()) end,
            attempts = case when $4 = 'unknown' then greatest(attempts, 1) else attempts end,
            first_sent_at = case when $4 = 'unknown' then coalesce(first_sent_at, clock_timestamp()) else first_sent_at end,
            last_sent_at = case when $4 = 'unknown' then coalesce(last_sent_at, clock_timestamp()) else last_sent_at end
      where number = $1 and fence = $2 and state = $3
     returning fence`,
    [
      effect.number,
      effect.fence,
      effect.state,
      verdict.state,
      verdict.code,
      verdict.counterpartyId,
      Math.round(verdict.delayMs),
    ],
  );
  return rows[0]?.fence ?? null;
}

/** Messages about a number, oldest first. */
export async function webhooksOf(tx: Tx, number: string): Promise<ShownWebhook[]> {
  const { rows } = await tx.query<ShownWebhook>(
    `select id, type, number, state, code, detail, received_at as "receivedAt"
       from onceper.webhook where number = $1 order by received_at, id`,
    [number],
  );
  return rows;
}

/** Messages that wait for a person, oldest first. One whose effect was resolved by hand after it came has been looked at. */
export async function webhooksForAPerson(tx: Tx, limit: number): Promise<ShownWebhook[]> {
  const { rows } = await tx.query<ShownWebhook>(
    `select id, type, number, state, code, detail, received_at as "receivedAt"
       from onceper.webhook w
      where state = 'attention'
        and not exists (select from onceper.outbox_act a
                         where a.number = w.number and a.verb = 'resolve' and a.at > w.received_at)
      order by received_at, id limit $1`,
    [limit],
  );
  return rows;
}
