import { OnceperError } from './error.ts';

/** A business key taken apart: which job, which of its periods, and the adjustment's number where it is one. */
export interface KeyParts {
  readonly job: string;
  readonly period: string;
  readonly adj: string | null;
}

const jobForm = /^[a-z][a-z0-9-]*$/;
const adjForm = /^[1-9][0-9]*$/;

/**
 * One of the period forms of period.ts, by its letters alone: whether the month or week exists is decided there, with
 * the job's calendar. Excluding every other text here keeps a retry counter or a date in a foreign form out of keys.
 */
const periodForm = /^(?:[12]\d{3}(?:-\d{2}(?:-\d{2}(?:T\d{2})?)?|-W\d{2})?|FY[12]\d{3}(?:-P\d{2})?)$/;

/**
 * The business key of a job's period: `settlement:2026-09`, or `settlement:2026-09:adj-1` for its adjustment 1. The same
 * parts always give the same text, and it takes part of no clock, attempt or start: a retry, a trigger and a backfill
 * of one period share it.
 *
 * @throws OnceperError `malformed_key` for a job id, a period or an adjustment number outside its form.
 */
export function businessKey(job: string, period: string, adj: string | null = null): string {
  const key = adj === null ? `${job}:${period}` : `${job}:${period}:adj-${adj}`;
  if (!jobForm.test(job)) throw malformedKey(key, `job id '${job}' is not lower case letters, digits and '-'`);
  if (!periodForm.test(period)) throw malformedKey(key, `'${period}' is not a period`);
  if (adj !== null && !adjForm.test(adj)) throw malformedKey(key, `'${adj}' is not an adjustment's number`);
  return key;
}

/**
 * Takes a business key apart; businessKey of the answer is the text again, letter for letter.
 *
 * @throws OnceperError `malformed_key` for any text that businessKey can't have made.
 */
export function parseKey(text: string): KeyParts {
  const [job = '', period, adjustment, ...rest] = text.split(':');
  if (period === undefined || rest.length > 0) throw malformedKey(text, 'a key has two or three parts');
  if (adjustment === undefined) {
    businessKey(job, period);
    return { job, period, adj: null };
  }
  if (!adjustment.startsWith('adj-')) throw malformedKey(text, `'${adjustment}' is not an adjustment`);
  const adj = adjustment.slice('adj-'.length);
  businessKey(job, period, adj);
  return { job, period, adj };
}

function malformedKey(text: string, reason: string): OnceperError {
  return new OnceperError({
    code: 'malformed_key',
    message: `'${text}' is not a business key: ${reason}`,
    remedy: 'write job:period, for example settlement:2026-09, or settlement:2026-09:adj-1 for an adjustment',
    at: text,
  });
}
