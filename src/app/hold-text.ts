import type { HoldList } from '../ops/holds.ts';
import { money } from './outbox-text.ts';
import type { Session } from './session.ts';
import { table } from './table.ts';

export function renderHolds(session: Session, { holds, next }: HoldList): string {
  if (holds.length === 0) return 'nothing is on hold in these states';
  const rows = holds.map(({ number, amount, currency, cause, heldAt, release }) => {
    const said = release === null ? '' : `to ${release.period} by ${release.actor}, ${release.at}`;
    return [number, money(amount.toString(), currency), currency, cause, heldAt, said];
  });
  const parts = [table(session, ['number', 'amount', 'currency', 'cause', 'held', 'released'], rows, ['amount'])];
  if (next !== null) parts.push(`more: npx onceper hold list --after ${next}`);
  return parts.join('\n\n');
}
