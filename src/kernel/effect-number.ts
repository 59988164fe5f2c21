import { OnceperError } from './error.ts';
import { businessKey, parseKey } from './key.ts';
import { statedSubjectId } from './subject.ts';

/** What one effect is about: the business key, the subject it concerns, its currency and what it does. */
export interface EffectParts {
  readonly key: string;
  readonly subject: string;
  readonly currency: string;
  readonly effect: string;
}

/** ISO 4217's code where no currency is involved: notices, which move no money, carry it. */
export const NO_CURRENCY = 'XXX';

const currencyForm = /^[A-Z]{3}$/;
const adjustmentForm = /^adj-[1-9][0-9]*$/;

/** `payout`, and for an effect on an effect a chain: `payout:reversal`. */
const effectForm = /^[a-z][a-z0-9-]*(?::[a-z][a-z0-9-]*)*$/;

/**
 * The number under which an effect is sent and under which the counterparty recognises it for good:
 * `settlement:2026-09:m-1001:GBP:payout`. It derives from its parts alone, so a row lost in a failover is derived again
 * letter for letter.
 *
 * @throws OnceperError `malformed_effect_number` (or `malformed_key`, `malformed_subject`) for a part outside its form.
 */
export function effectNumber(parts: EffectParts): string {
  const { key, subject, currency, effect } = parts;
  const number = `${key}:${subject}:${currency}:${effect}`;
  parseKey(key);
  statedSubjectId(subject);
  if (!currencyForm.test(currency)) throw malformedNumber(number, `'${currency}' is not a currency code`);
  if (!effectForm.test(effect)) throw malformedNumber(number, `'${effect}' is not an effect's name`);
  return number;
}

/** Whether an effect moves money, by its number: the currency is the only part in capitals between two colons. */
export function movesMoney(number: string): boolean {
  return !number.includes(`:${NO_CURRENCY}:`);
}

/**
 * Takes an effect number apart; effectNumber of the answer is the text again. The currency, the only part in capitals
 * after the period, tells an adjustment's key from a subject that happens to be called `adj-1`.
 *
 * @throws OnceperError `malformed_effect_number`, `malformed_key` or `malformed_subject`.
 */
export function parseEffectNumber(text: string): EffectParts {
  const [job = '', period = '', ...rest] = text.split(':');
  const [first = '', second = ''] = rest;
  const isAdjusted = adjustmentForm.test(first) && !currencyForm.test(second);
  const key = isAdjusted ? businessKey(job, period, first.slice('adj-'.length)) : businessKey(job, period);
  const [subject, currency, ...effect] = isAdjusted ? rest.slice(1) : rest;
  if (subject === undefined || currency === undefined) throw malformedNumber(text, 'parts are missing');
  const parts = { key, subject, currency, effect: effect.join(':') };
  effectNumber(parts);
  return parts;
}

function malformedNumber(text: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_effect_number',
    message: `'${text}' is not an effect number: ${reason}`,
    remedy: 'write key:subject:CUR:effect, for example settlement:2026-09:m-1001:GBP:payout',
    at: text,
  });
}
