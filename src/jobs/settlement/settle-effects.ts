import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import type { SettledEffect } from '../job.ts';

/** The transfer that each outcome of a payout posts. */
const transfers = {
  succeeded: { kind: 'paid', debit: 'in_transit', credit: 'cash' },
  failed: { kind: 'held', debit: 'in_transit', credit: 'hold' },
  returned: { kind: 'returned', debit: 'cash', credit: 'hold' },
} as const;

const PAYOUT = ':payout';

interface Part {
  readonly key: string;
  readonly subject: string;
  readonly currency: string;
  readonly kind: string;
  readonly debit: string;
  readonly credit: string;
}

/**
 * Posts what became of payouts, each outcome at most once: money in transit arrives or goes to the merchant's hold account, a
 * returned payout comes back from cash to hold. Amounts are the lines'. Throws OnceperError `effect_unknown` where an effect
 * is none of ours, and the database's `constraint` where a payout is said to have both succeeded and failed.
 */
export async function settleEffects(tx: Tx, effects: readonly SettledEffect[]): Promise<void> {
  if (effects.length === 0) return;
  const parts = effects.map(partsOf);
  const { rows } = await tx.query<{ found: number }>(
    `with effect as (
       select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
                     as e (key, merchant, currency, kind, debit, credit)
     ), found as (
       select e.*, l.payout
         from effect e
         join settlement.line l on l.key = e.key and l.merchant = e.merchant and l.currency = e.currency
     ), posted as (
       insert into settlement.posting (key, merchant, currency, kind, debit, credit, amount)
       select key, merchant, currency, kind, debit, credit, payout from found
        order by key, merchant, currency, kind
           on conflict (key, merchant, currency, kind) do nothing
     )
     select count(*)::int4 as found from found`,
    [
      parts.map((part) => part.key),
      parts.map((part) => part.subject),
      parts.map((part) => part.currency),
      parts.map((part) => part.kind),
      parts.map((part) => part.debit),
      parts.map((part) => part.credit),
    ],
    'settlement settle effects',
  );
  if (rows[0]?.found !== effects.length) throw unknownEffect(effects.map((effect) => effect.number).join(', '));
}

/**
 * Key and subject are the row's, and its number derives from them (outbox_number_derives_from_key); only what follows is read.
 * To take the whole number apart again and check its forms costs 1.4 µs an effect where this costs 0.2. A currency in no form has no line.
 */
function partsOf({ number, key, subject, state }: SettledEffect): Part {
  const prefix = `${key}:${subject}:`;
  const end = number.length - PAYOUT.length;
  if (!number.startsWith(prefix) || !number.endsWith(PAYOUT)) throw unknownEffect(number);
  return { key, subject, currency: number.slice(prefix.length, end), ...transfers[state] };
}

function unknownEffect(numbers: string): OnceperError {
  return new OnceperError({
    code: 'effect_unknown',
    message: `not every one of these effects is a payout of a settlement line: ${numbers}`,
    remedy: 'the outbox and the lines commit together: look for a restored or hand-changed table',
    at: numbers,
  });
}
