/** A settled key's document as every answer shows it: totals per currency, amounts as text of minor units. */
export interface Document {
  readonly id: string;
  readonly totals: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** The document in an action's stored result, or null where there is none yet or the job makes none. */
export function documentOf(result: unknown): Document | null {
  const document = fieldOf(result, 'document');
  const id = fieldOf(document, 'id');
  if (typeof id !== 'string') return null;
  return { id, totals: totalsOf(fieldOf(document, 'totals')) };
}

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
