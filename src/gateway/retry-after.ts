/** However long a counterparty asks for, one hour later it is asked again: a slip of a header must not stop payouts for good. */
const CAP_MS = 3_600_000;

/**
 * How long a Retry-After header asks us to wait, in milliseconds, 0 where it is absent or unreadable. Both forms: seconds,
 * and an HTTP date, which is read against the answer's own Date header where there is one, because our clocks may differ.
 */
export function retryAfterMs(header: string | undefined, date: string | undefined, now: number): number {
  const value = header?.trim() ?? '';
  if (/^\d+$/.test(value)) return Math.min(CAP_MS, Number(value) * 1_000);
  const at = Date.parse(value);
  if (Number.isNaN(at)) return 0;
  const theirs = date === undefined ? Number.NaN : Date.parse(date);
  return Math.min(CAP_MS, Math.max(0, at - (Number.isNaN(theirs) ? now : theirs)));
}

/** How long an answer's own headers ask us to wait, in milliseconds. */
export function patienceOf(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  return retryAfterMs(first(headers['retry-after']), first(headers['date']), Date.now());
}

function first(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.[0];
}
