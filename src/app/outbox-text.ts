import { isCurrency } from '../kernel/currency.ts';
import { formatAmount } from '../kernel/money.ts';
import type { Acted, OutboxEntry, OutboxList } from '../ops/outbox.ts';
import type { Cleaned } from '../ops/outbox-clean.ts';
import type { Session } from './session.ts';
import { table } from './table.ts';
import { linesOf } from './terminal.ts';

/** An amount of minor units as people write it; as it is where its currency is unknown. */
export function money(amount: string | null, currency: string | null): string {
  if (amount === null) return '';
  const isMinorUnits = currency !== null && isCurrency(currency) && /^-?\d+$/.test(amount);
  return isMinorUnits ? formatAmount(BigInt(amount), currency) : amount;
}

export function renderList(session: Session, { effects, next, webhooks }: OutboxList): string {
  const parts: string[] = [];
  if (effects.length === 0) parts.push('no effect is in these states');
  else {
    const rows = effects.map(({ number, amount, currency, state, code, attempts }) => {
      return [number, money(amount, currency), currency ?? '', state, code ?? '', String(attempts)];
    });
    parts.push(
      table(session, ['number', 'amount', 'currency', 'state', 'code', 'attempts'], rows, ['amount', 'attempts']),
    );
  }
  if (next !== null) parts.push(`more: npx onceper outbox list --after ${next}`);
  if (webhooks.length > 0) parts.push(`webhooks that nobody could apply:\n${renderWebhooks(session, webhooks)}`);
  return parts.join('\n\n');
}

export function renderEntry(session: Session, { effect, deliveries, webhooks, acts }: OutboxEntry): string {
  const { number, state, code, amount, currency, attempts, lookUps, counterpartyId, dueAt, waitsFor, body } = effect;
  const facts = [
    `${number}`,
    `  ${state}${code === null ? '' : ` (${code})`}${amount === null ? '' : `, ${money(amount, currency)} ${currency ?? ''}`.trimEnd()}`,
    `  sent ${attempts} times, looked up ${lookUps} times${dueAt === null ? '' : `, due ${dueAt}`}`,
    ...(waitsFor === null || dueAt === null ? [] : [`  not before ${waitsFor} has its fate`]),
    ...(counterpartyId === null ? [] : [`  at the counterparty: ${counterpartyId}`]),
    `  body: ${body}`,
  ];
  const parts = [linesOf(facts)];
  if (deliveries.length > 0) {
    const rows = deliveries.map((call) => {
      const { at, fence, step, outcome, status, answer } = call;
      return [at, String(fence), step, outcome, call.code ?? '', status === null ? '' : String(status), answer ?? ''];
    });
    parts.push(
      table(session, ['at', 'fence', 'step', 'outcome', 'code', 'status', 'answer'], rows, ['fence', 'status']),
    );
  }
  if (webhooks.length > 0) parts.push(renderWebhooks(session, webhooks));
  if (acts.length > 0) {
    const rows = acts.map(({ at, verb, from, to, actor, reason }) => [at, verb, from, to, actor, reason]);
    parts.push(table(session, ['at', 'act', 'from', 'to', 'actor', 'reason'], rows));
  }
  return parts.join('\n\n');
}

export function renderActed({ number, from, to, delivering, actor }: Acted): string {
  const next = delivering ? '; the relay takes it now' : '';
  return `${number}: ${from} became ${to}${next} (${actor})`;
}

export function renderCleaned({ kind, deleted, batches }: Cleaned): string {
  if (kind === 'busy') return `another cleaner is at work; ${deleted} records were deleted by this one`;
  return `${deleted} records of calls deleted in ${batches} batches${kind === 'stopped' ? ', stopped by a signal' : ''}`;
}

function renderWebhooks(session: Session, webhooks: OutboxList['webhooks']): string {
  const rows = webhooks.map(({ receivedAt, id, type, number, state, code, detail }) => {
    return [receivedAt, id, type, number ?? '', state, code ?? '', detail ?? ''];
  });
  return table(session, ['received', 'webhook', 'type', 'number', 'state', 'code', 'what differs'], rows);
}
