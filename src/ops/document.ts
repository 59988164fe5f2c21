/** A settled key's document as every answer shows it: totals per currency, amounts as text of minor units. */
export interface Document {
  readonly id: string;
  readonly totals: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** The document in an action's stored result, or null where there is none yet or the job's result is something else. */
export function documentOf(result: unknown): Document | null {
  const document = fieldOf(result, 'document');
  const [id, totals] = [fieldOf(document, 'id'), fieldOf(document, 'totals')];
  if (typeof id !== 'string' || typeof totals !== 'object' || totals === null) return null;
  return { id, totals: totalsOf(totals) };
}

/** What people read of a stored result that is no document with totals: its JSON on one line, cut where it is long. */
export function resultInWords(result: unknown): string {
  const json = JSON.stringify(result ?? null);
  return json.length <= MOST_SHOWN ? json : `${json.slice(0, MOST_SHOWN)}… (${json.length} characters; --json has all)`;
}

const MOST_SHOWN = 500;

/**
 * jsonb forgets the order of names; people read sums in the order in which they are added up. assigned is the part of carryIn
 * that assigned postings brought, so it stands behind them.
 */
const ORDER = ['sales', 'refunds', 'fees', 'net', 'carryIn', 'payout', 'closing', 'assigned'];

function totalsOf(totals: unknown): Document['totals'] {
  return Object.fromEntries(
    Object.entries(objectOf(totals)).map(([currency, sums]) => {
      const entries = Object.entries(objectOf(sums)).map(([name, amount]) => [name, String(amount)] as const);
      return [currency, Object.fromEntries(entries.sort(([a], [b]) => placeOf(a) - placeOf(b)))];
    }),
  );
}

function placeOf(name: string): number {
  const place = ORDER.indexOf(name);
  return place < 0 ? ORDER.length : place;
}

function fieldOf(value: unknown, name: string): unknown {
  return Object.entries(objectOf(value)).find(([key]) => key === name)?.[1];
}

function objectOf(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
