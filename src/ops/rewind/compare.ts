import type { FoundTransfer, Gateway } from '../../gateway/port.ts';
import { endedPeriods } from '../../jobs/due.ts';
import type { Registry } from '../../jobs/registry.ts';
import { storedRule } from '../../jobs/rule.ts';
import { parseEffectNumber } from '../../kernel/effect-number.ts';
import { OnceperError } from '../../kernel/error.ts';
import { parseKey } from '../../kernel/key.ts';
import type { Instant } from '../../kernel/sql.ts';
import { clockOf, type Database } from '../../store/database.ts';
import { type ListedTransfer, type LostNumbers, type PaidTwice, withListing } from '../../store/listing.ts';
import { activeRule } from '../../store/rules.ts';

/** What a comparison of the ledger with the counterparty's list found. */
export interface Comparison {
  /** Transfers that carry numbers of ours. */
  readonly known: number;
  /** Numbers for which money has moved more than once. */
  readonly twice: readonly PaidTwice[];
  /** Keys of which the counterparty knows numbers that this ledger lost. */
  readonly lost: readonly LostNumbers[];
  /** Numbers that this ledger knows were paid and that the list lacks, the first few: the list is not whole. */
  readonly unlisted: readonly string[];
  /** References in the form of our numbers that can't be ours, the first few: no run can have made them. */
  readonly impossible: readonly string[];
}

/** What a comparison works with. */
export interface Compared {
  readonly db: Database;
  readonly registry: Registry;
  readonly gateway: Gateway;
}

const PAGE = 1_000;
const SHOWN = 100;

/**
 * Compares the ledger with every transfer that the counterparty made since `since`; `onKnown` hears of its numbers, a page at a
 * time. Changes nothing by itself. Throws OnceperError `list_stands_still` for a list that gives no new transfers and claims to
 * have more, and what the gateway's list throws.
 */
export async function compareWithCounterparty(
  parts: Compared,
  since: Instant,
  onKnown: (numbers: readonly string[]) => Promise<void>,
): Promise<Comparison> {
  const to = await clockOf(parts.db);
  const read = numberReader(await periodsOfJobs(parts, to));
  const impossible: string[] = [];
  let known = 0;
  return withListing(parts.db, async (listing) => {
    for await (const { transfers, hasMore } of pagesOf(parts.gateway, since, to)) {
      const listed = transfers.map((transfer) => listedOf(transfer, read, impossible));
      if ((await listing.add(listed)) === 0 && hasMore) throw standsStill(transfers[0]?.id ?? 'an empty page');
      const numbers = listed.flatMap(({ number }) => (number === null ? [] : [number]));
      known += numbers.length;
      await onKnown(numbers);
    }
    const visibleAfterMs = parts.gateway.properties.visibilityDelayMs;
    return {
      known,
      twice: await listing.paidTwice(),
      lost: await listing.lost(),
      unlisted: await listing.unlisted({ from: since, to, visibleAfterMs }, SHOWN),
      impossible,
    };
  });
}

type Page = Awaited<ReturnType<Gateway['list']>>;

async function* pagesOf(gateway: Gateway, from: Instant, to: Instant): AsyncGenerator<Page> {
  let after: string | undefined;
  for (;;) {
    const page = await gateway.list({ from, to, limit: PAGE, ...(after === undefined ? {} : { after }) });
    yield page;
    if (!page.hasMore) return;
    after = page.transfers.at(-1)?.id;
  }
}

type NumberReader = (
  reference: string,
) => { readonly kind: 'ours'; readonly key: string } | { readonly kind: 'impossible' | 'theirs' };

function listedOf({ id, reference, status }: FoundTransfer, read: NumberReader, impossible: string[]): ListedTransfer {
  const found = read(reference);
  if (found.kind === 'impossible' && impossible.length < SHOWN) impossible.push(reference);
  const isOurs = found.kind === 'ours';
  return { id, number: isOurs ? reference : null, key: isOurs ? found.key : null, moved: status !== 'failed' };
}

/** The ended periods of each job; null where no rule is loaded, which a restore may have lost too: then any period is possible. */
async function periodsOfJobs(
  { db, registry }: Compared,
  now: Instant,
): Promise<ReadonlyMap<string, ReadonlySet<string> | null>> {
  const periods = new Map<string, ReadonlySet<string> | null>();
  for (const job of registry.ids) {
    const stored = await activeRule(db, job);
    const rule = stored === null ? null : storedRule(stored);
    periods.set(job, rule === null ? null : new Set(endedPeriods(rule, now)));
  }
  return periods;
}

/**
 * The counterparty may serve others too: a reference that is no number of a job of ours is none of our business. One whose period
 * has not ended, or lies before the job's first, or which is of an adjustment, no run of ours can have sent.
 */
function numberReader(periods: ReadonlyMap<string, ReadonlySet<string> | null>): NumberReader {
  return (reference) => {
    try {
      const { key } = parseEffectNumber(reference);
      const { job, period, adj } = parseKey(key);
      const ended = periods.get(job);
      if (ended === undefined) return { kind: 'theirs' };
      const isPossible = adj === null && (ended === null || ended.has(period));
      return isPossible ? { kind: 'ours', key } : { kind: 'impossible' };
    } catch (error) {
      if (error instanceof OnceperError) return { kind: 'theirs' };
      throw error;
    }
  };
}

function standsStill(at: string): OnceperError {
  return new OnceperError({
    code: 'list_stands_still',
    message:
      'the counterparty’s list of transfers gives no new ones and claims to have more: it ignores where the last page ended',
    remedy: 'its list must go on after the id that "after" names (docs/gateway.md); delivery stays as it is',
    at,
  });
}
