import { hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { FoundTransfer, Transfer } from '../port.ts';
import { parseTransfer } from '../transfer.ts';
import type { Bank } from './bank.ts';
import type { Herald } from './herald.ts';
import type { Journal, JournalEntry } from './journal.ts';
import { chooseMode, type Mode, type SimulatorSettings } from './settings.ts';

/** What a client gets for a POST: an answer, half of one, or a reset connection. */
export type Reply =
  | {
      readonly kind: 'answer' | 'cut';
      readonly status: number;
      readonly body: unknown;
      readonly headers?: Record<string, string>;
    }
  | { readonly kind: 'reset' };

/** Decides about POSTs and settles, and journals each decision before the reply is known to anyone. */
export interface Teller {
  receive(number: string, body: string, settings: SimulatorSettings): Promise<Reply>;
  /** Gives a number's transfer another status; null where it has none. */
  settle(number: string, status: string): Promise<FoundTransfer | null>;
}

interface Decided {
  readonly number: string;
  readonly decision: JournalEntry['decision'];
  readonly transfer?: FoundTransfer;
  readonly status: number | null;
  readonly bodyHash?: string;
}

/** Counters of what was read back from the journal, so that a restart neither repeats a seq nor forgets a try. */
export interface Tally {
  seq: number;
  arrivals: number;
  readonly tries: Map<string, number>;
}

/** Where the teller writes, what it remembers, and who tells others. */
interface Office {
  readonly bank: Bank;
  readonly journal: Journal;
  readonly tally: Tally;
  readonly herald: Herald;
}

interface Desk extends Office {
  readonly signal: AbortSignal;
  readonly inFlight: Set<string>;
}

interface Asked {
  readonly number: string;
  readonly body: string;
  readonly transfer: Transfer;
  readonly mode: Mode;
  readonly settings: SimulatorSettings;
}

/** A teller over the bank's memory and the journal, whose herald tells of every transfer; `signal` ends the waits of slow answers. */
export function createTeller(office: Office, signal: AbortSignal): Teller {
  const { tally } = office;
  const desk: Desk = { ...office, signal, inFlight: new Set() };
  return {
    async receive(number, body, settings) {
      const attempt = (tally.tries.get(number) ?? 0) + 1;
      tally.tries.set(number, attempt);
      tally.arrivals += 1;
      const transfer = parseTransfer(body);
      if (transfer === null || transfer.reference !== number) return refuse(desk, number, 400, 'malformed_transfer');
      const { everything, closed } = settings;
      if (everything !== null) return refuse(desk, number, everything.status, everything.code);
      if (closed.includes(transfer.destination)) return refuse(desk, number, 400, 'account_closed');
      const mode = chooseMode(settings, number, attempt, tally.arrivals);
      return serve(desk, { number, body, transfer, mode, settings });
    },
    settle: (number, status) => settle(desk, number, status),
  };
}

async function settle(desk: Desk, number: string, status: string): Promise<FoundTransfer | null> {
  const transfer = desk.bank.latestOf(number);
  if (transfer === null) return null;
  const settled = { ...transfer, status };
  await note(desk, { number, decision: 'settled', transfer: settled, status: null });
  return settled;
}

/** The bank makes up its mind later; only its own end keeps it from that. */
function settleLater(desk: Desk, number: string, { pendingBecomes }: SimulatorSettings): void {
  if (pendingBecomes === null) return;
  const { status, afterMs } = pendingBecomes;
  delay(afterMs, undefined, { signal: desk.signal })
    .then(() => settle(desk, number, status))
    .catch(() => undefined);
}

async function serve(desk: Desk, asked: Asked): Promise<Reply> {
  const { number, settings } = asked;
  switch (asked.mode) {
    case 'drop_before':
      await note(desk, { number, decision: 'dropped', status: null });
      return { kind: 'reset' };
    case 'in_flight':
      return refuse(desk, number, 409, 'in_flight');
    case 'error_before':
      return refuse(desk, number, 500, 'internal');
    case 'busy':
      return refuse(desk, number, 429, 'busy', { 'retry-after': retryAfter(settings) });
    case 'refused':
      return refuse(desk, number, settings.refusal.status, settings.refusal.code);
    case 'ok':
    case 'slow':
    case 'drop_after':
    case 'cut':
    case 'error_after':
    case 'pending':
    case 'returned':
      return actWhenFree(desk, asked);
  }
}

async function actWhenFree(desk: Desk, asked: Asked): Promise<Reply> {
  if (desk.inFlight.has(asked.number)) return refuse(desk, asked.number, 409, 'in_flight');
  desk.inFlight.add(asked.number);
  try {
    if (asked.mode === 'slow') await delay(asked.settings.delayMs, undefined, { signal: desk.signal });
    return await act(desk, asked);
  } finally {
    desk.inFlight.delete(asked.number);
  }
}

async function act(desk: Desk, { number, body, transfer, mode, settings }: Asked): Promise<Reply> {
  const bodyHash = hash('sha256', body);
  const remembered = desk.bank.recall(number, Date.now(), settings.forgetAfterMs);
  if (remembered !== null && remembered.bodyHash !== bodyHash) return refuse(desk, number, 422, 'key_reused');
  if (remembered !== null) {
    await note(desk, { number, decision: 'replayed', transfer: remembered.transfer, status: remembered.status });
    return replyOf(remembered.status, remembered.transfer, mode);
  }
  const id = `tr_${desk.tally.seq + 1}`;
  const made = { id, status: mode === 'pending' ? 'pending' : 'succeeded', ...transfer };
  const status = mode === 'error_after' ? 500 : mode === 'pending' ? 202 : 201;
  await note(desk, { number, decision: 'executed', transfer: made, status, bodyHash });
  if (mode === 'pending') settleLater(desk, number, settings);
  if (mode === 'returned') {
    await note(desk, { number, decision: 'settled', transfer: { ...made, status: 'returned' }, status: null });
  }
  return replyOf(status, made, mode);
}

/** Journals first: the memory learns of it when it is on the disk, and the caller answers after that. */
async function note(desk: Desk, { number, decision, transfer, status, bodyHash }: Decided): Promise<void> {
  desk.tally.seq += 1;
  const entry: JournalEntry = {
    seq: desk.tally.seq,
    at: new Date().toISOString(),
    number,
    decision,
    transfer: transfer ?? null,
    status,
    bodyHash: bodyHash ?? null,
  };
  await desk.journal.append(entry);
  desk.bank.apply(entry);
  if (transfer !== undefined && decision !== 'replayed') desk.herald.announce(entry.seq, transfer);
}

async function refuse(
  desk: Desk,
  number: string,
  status: number,
  code: string | null,
  headers: Record<string, string> = {},
): Promise<Reply> {
  await note(desk, { number, decision: 'refused', status });
  return { kind: 'answer', status, body: refusalBody(status, code), headers };
}

/** The body of a refusal; a counterparty without codes says nothing in it. */
export function refusalBody(status: number, code: string | null): unknown {
  return code === null ? {} : { error: { code, message: `refused with ${status}` } };
}

function replyOf(status: number, transfer: FoundTransfer, mode: Mode): Reply {
  if (mode === 'drop_after') return { kind: 'reset' };
  const body = status === 500 ? { error: { code: 'internal', message: 'the answer was lost in here' } } : transfer;
  return { kind: mode === 'cut' ? 'cut' : 'answer', status, body };
}

function retryAfter(settings: SimulatorSettings): string {
  if (settings.retryAfterForm === 'seconds') return String(settings.retryAfterSeconds);
  return new Date(Date.now() + settings.retryAfterSeconds * 1_000).toUTCString();
}
