import type { FoundTransfer } from '../port.ts';
import type { JournalEntry } from './journal.ts';

/** What the bank remembers of an idempotency number: the answer it repeats, and a hash of the body it belongs to. */
interface Remembered {
  readonly transfer: FoundTransfer;
  readonly status: number;
  readonly bodyHash: string;
  readonly atMs: number;
}

interface Booked {
  readonly transfer: FoundTransfer;
  readonly atMs: number;
}

export interface PageQuery {
  readonly fromMs: number;
  readonly toMs: number;
  readonly after: string | null;
  readonly limit: number;
}

/**
 * The simulator's memory. Nothing enters it but journal entries, at start and then as each is on the disk: a look-up never
 * shows a transfer that a kill could take back, and a restart remembers exactly what was answered for.
 */
export interface Bank {
  apply(entry: JournalEntry): void;
  recall(number: string, nowMs: number, forgetAfterMs: number | null): Remembered | null;
  byReference(reference: string, visibleUntilMs: number): FoundTransfer[];
  latestOf(number: string): FoundTransfer | null;
  /** Transfers in the order of their booking, or null when `after` is no transfer's id. */
  page(query: PageQuery): { readonly data: FoundTransfer[]; readonly hasMore: boolean } | null;
  counts(): Readonly<Record<JournalEntry['decision'], number>>;
}

/** An empty memory. */
export function createBank(): Bank {
  const memory = new Map<string, Remembered>();
  const booked: Booked[] = [];
  const places = new Map<string, number>();
  const references = new Map<string, number[]>();
  const counts = { executed: 0, replayed: 0, refused: 0, dropped: 0, settled: 0 };

  function book(entry: JournalEntry, transfer: FoundTransfer): void {
    const atMs = Date.parse(entry.at);
    const place = booked.push({ transfer, atMs }) - 1;
    places.set(transfer.id, place);
    const rows = references.get(transfer.reference);
    if (rows === undefined) references.set(transfer.reference, [place]);
    else rows.push(place);
    memory.set(entry.number, { transfer, status: entry.status ?? 201, bodyHash: entry.bodyHash ?? '', atMs });
  }

  function settle(transfer: FoundTransfer): void {
    const place = places.get(transfer.id);
    const before = place === undefined ? undefined : booked[place];
    if (place !== undefined && before !== undefined) booked[place] = { ...before, transfer };
  }

  return {
    apply(entry) {
      counts[entry.decision] += 1;
      if (entry.transfer === null) return;
      if (entry.decision === 'executed') book(entry, entry.transfer);
      if (entry.decision === 'settled') settle(entry.transfer);
    },
    recall(number, nowMs, forgetAfterMs) {
      const remembered = memory.get(number);
      if (remembered === undefined) return null;
      return forgetAfterMs !== null && nowMs - remembered.atMs >= forgetAfterMs ? null : remembered;
    },
    byReference(reference, visibleUntilMs) {
      return (references.get(reference) ?? []).flatMap((place) => {
        const row = booked[place];
        return row !== undefined && row.atMs <= visibleUntilMs ? [row.transfer] : [];
      });
    },
    latestOf(number) {
      const place = references.get(number)?.at(-1);
      return place === undefined ? null : (booked[place]?.transfer ?? null);
    },
    page: (query) => pageOf(booked, places, query),
    counts: () => ({ ...counts }),
  };
}

function pageOf(
  booked: readonly Booked[],
  places: ReadonlyMap<string, number>,
  query: PageQuery,
): ReturnType<Bank['page']> {
  const last = query.after === null ? -1 : places.get(query.after);
  if (last === undefined) return null;
  const data: FoundTransfer[] = [];
  for (let place = last + 1; place < booked.length; place += 1) {
    const row = booked[place];
    if (row === undefined || row.atMs < query.fromMs || row.atMs >= query.toMs) continue;
    if (data.length === query.limit) return { data, hasMore: true };
    data.push(row.transfer);
  }
  return { data, hasMore: false };
}
