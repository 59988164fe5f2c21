import type { Verdict } from '../kernel/delivery.ts';
import type { Said } from '../kernel/destination.ts';
import { movesMoney } from '../kernel/effect-number.ts';
import type { Tx } from '../kernel/sql.ts';
import type { EffectState } from '../kernel/transitions.ts';

/** One call to the counterparty as evidence: what was asked, under which fence, and what came back. */
export interface DeliveryTry {
  readonly number: string;
  readonly fence: bigint;
  readonly step: 'send' | 'look_up';
  readonly requestHash: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly counterpartyId: string | null;
  readonly code: string | null;
  readonly answer: string | null;
}

/** What a relay wants to record of an effect that it holds: the row's state and fence meanwhile, and the verdict. */
export interface EffectOutcome {
  readonly number: string;
  readonly key: string;
  readonly subject: string;
  readonly fence: bigint;
  readonly held: Extract<EffectState, 'sending' | 'unknown' | 'pending_external'>;
  readonly verdict: Verdict;
  readonly tries: readonly DeliveryTry[];
  /** What its answer says of the destination as a whole. */
  readonly said?: Said;
}

/** An effect whose fate became known in this transaction. */
export interface FinalEffect {
  readonly number: string;
  readonly key: string;
  readonly subject: string;
  readonly state: Extract<EffectState, 'succeeded' | 'failed' | 'returned'>;
}

/** Posts what became of effects, in the transaction that records them: the job's settleEffects. */
export type Settle = (tx: Tx, effects: readonly FinalEffect[]) => Promise<void>;

/**
 * Records outcomes by number, fence and state, appends their deliveries, and lets the job post the final ones of those that
 * were won: all in the caller's transaction. Returns the numbers won. The others were taken over; their answers stay as
 * evidence, and the caller reads them again: nothing is forced. A transfer that was already returned when it was found
 * passes through `succeeded`, with both postings.
 */
export async function recordOutcomes(
  tx: Tx,
  outcomes: readonly EffectOutcome[],
  settle: Settle,
): Promise<ReadonlySet<string>> {
  const won = await moveEffects(tx, outcomes);
  const ours = outcomes.filter((outcome) => won.has(outcome.number));
  const uncounted = ours.filter(({ verdict }) => verdict.isUncounted === true);
  if (uncounted.length > 0) await takeBackTries(tx, uncounted);
  const settled = ours.flatMap(firstFate).sort(byNumber);
  if (settled.length > 0) await settle(tx, settled);
  const returned = ours.filter((outcome) => outcome.verdict.state === 'returned');
  if (returned.length > 0) await recordReturned(tx, returned, settle);
  return won;
}

/** A notice moves no money, so there is nothing to post. */
function firstFate({ number, key, subject, verdict }: EffectOutcome): FinalEffect[] {
  if (!movesMoney(number)) return [];
  if (verdict.state === 'failed') return [{ number, key, subject, state: 'failed' }];
  if (verdict.state === 'succeeded' || verdict.state === 'returned') {
    return [{ number, key, subject, state: 'succeeded' }];
  }
  return [];
}

async function recordReturned(tx: Tx, outcomes: readonly EffectOutcome[], settle: Settle): Promise<void> {
  await tx.query(
    `update onceper.outbox set state = 'returned' where number = any ($1::text[]) and state = 'succeeded'`,
    [outcomes.map((outcome) => outcome.number)],
  );
  await settle(
    tx,
    outcomes.map(({ number, key, subject }) => ({ number, key, subject, state: 'returned' as const })).sort(byNumber),
  );
}

/** Counts the tries of recorded effects back, as if they had not been taken. A number that no send has used has no first one. */
async function takeBackTries(tx: Tx, outcomes: readonly EffectOutcome[]): Promise<void> {
  await tx.query(
    `update onceper.outbox o
        set attempts = o.attempts - n.sent::int4,
            lookups = o.lookups - (not n.sent)::int4,
            first_sent_at = case when n.sent and o.attempts = 1 then null else o.first_sent_at end,
            last_sent_at = case when n.sent and o.attempts = 1 then null else o.last_sent_at end
       from unnest($1::text[], $2::int8[], $3::bool[]) as n (number, fence, sent)
      where o.number = n.number and o.fence = n.fence`,
    [
      outcomes.map((outcome) => outcome.number),
      outcomes.map((outcome) => outcome.fence),
      outcomes.map((outcome) => outcome.held === 'sending'),
    ],
  );
}

/**
 * Moves the effects that are still held and appends every try, in one statement: a batch is recorded in two round trips with
 * its postings. A try is one fence and step, so recording it again after a lost COMMIT answer adds nothing.
 */
async function moveEffects(tx: Tx, outcomes: readonly EffectOutcome[]): Promise<ReadonlySet<string>> {
  const tries = outcomes.flatMap((outcome) => outcome.tries);
  const { rows } = await tx.query<{ number: string }>(
    `with tried as (
       insert into onceper.delivery (number, fence, step, request_hash, outcome, status, counterparty_id, code, answer)
       select * from unnest($8::text[], $9::int8[], $10::text[], $11::text[], $12::text[], $13::int4[], $14::text[],
                            $15::text[], $16::text[])
       on conflict do nothing)
     update onceper.outbox o
        set state = n.state,
            due_at = clock_timestamp() + n.delay_ms * interval '1 millisecond',
            counterparty_id = coalesce(n.counterparty_id, o.counterparty_id),
            code = n.code,
            final_at = case when n.state in ('succeeded', 'failed') then clock_timestamp() end
       from unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::float8[], $6::text[], $7::text[])
         as n (number, fence, held, state, delay_ms, counterparty_id, code)
      where o.number = n.number and o.fence = n.fence and o.state = n.held
     returning o.number`,
    [
      outcomes.map((outcome) => outcome.number),
      outcomes.map((outcome) => outcome.fence),
      outcomes.map((outcome) => outcome.held),
      outcomes.map(({ verdict }) => (verdict.state === 'returned' ? 'succeeded' : verdict.state)),
      outcomes.map(({ verdict }) => verdict.delayMs),
      outcomes.map(({ verdict }) => verdict.counterpartyId),
      outcomes.map(({ verdict }) => verdict.code),
      tries.map((t) => t.number),
      tries.map((t) => t.fence),
      tries.map((t) => t.step),
      tries.map((t) => t.requestHash),
      tries.map((t) => t.outcome),
      tries.map((t) => t.status),
      tries.map((t) => t.counterpartyId),
      tries.map((t) => t.code),
      tries.map((t) => t.answer),
    ],
    'onceper record outcomes',
  );
  return new Set(rows.map((row) => row.number));
}

function byNumber(a: FinalEffect, b: FinalEffect): number {
  return a.number < b.number ? -1 : a.number > b.number ? 1 : 0;
}
