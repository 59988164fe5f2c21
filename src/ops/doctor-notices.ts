import { parseDestination } from '../kernel/destination.ts';
import type { Database } from '../store/database.ts';
import { type NoticesOwed, noticesOwed } from '../store/notices.ts';
import { inWords } from './both-clocks.ts';
import { type Check, ok, warn } from './check.ts';

/** A receiver that restarts is back within minutes. */
const PATIENCE_MS = 300_000;

/** Receivers of webhooks that have not answered for a while. No money waits for them, so it is a warning. */
export async function checkNotices(db: Database): Promise<readonly Check[]> {
  const owed = await noticesOwed(db);
  const late = owed.filter(({ ageMs }) => ageMs !== null && ageMs > PATIENCE_MS);
  if (late.length > 0) return late.map(lateRow);
  const count = owed.reduce((sum, { count: own }) => sum + own, 0);
  return [ok('notices', count === 0 ? 'everybody has been told' : `${count} on their way`)];
}

function lateRow({ destination, count, ageMs, code }: NoticesOwed): Check {
  const parsed = parseDestination(destination);
  const receiver = parsed.kind === 'webhook' ? parsed.receiver : destination;
  const detail = `${receiver} has not acknowledged ${count}, tried for ${inWords(ageMs ?? 0)}: ${code ?? 'no answer'}`;
  return warn('notices', detail, remedyOf(code, receiver));
}

function remedyOf(code: string | null, receiver: string): string {
  if (code === 'receiver_unknown') return `name ${receiver} in the relay’s ONCEPER_RECEIVERS`;
  if (code === 'address_refused') {
    return 'its name leads to an internal address: if it is meant, list that in the relay’s ONCEPER_RECEIVER_NETWORKS';
  }
  return 'look at the receiver; the relay goes on by itself (npx onceper outbox list --state pending,unknown)';
}
