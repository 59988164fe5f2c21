import { readFileSync } from 'node:fs';

/** What the counterparty did for one number, by its own journal. */
export interface Moved {
  /** How often it moved money. */
  executed: number;
  readonly id: string;
  readonly amount: string;
  readonly currency: string;
  readonly destination: string;
  /** When it moved it first, in milliseconds of the epoch. */
  readonly at: number;
  /** The last status of the transfer that it told of. */
  status: string;
}

interface Line {
  readonly seq: number;
  readonly at: string;
  readonly number: string;
  readonly decision: string;
  readonly transfer: {
    readonly id: string;
    readonly status: string;
    readonly amount: string;
    readonly currency: string;
    readonly destination: string;
  } | null;
}

/** Every number that money was moved for; a last line without its end was never answered for. */
export function readMoves(file: string): { readonly moves: ReadonlyMap<string, Moved>; readonly lines: number } {
  const moves = new Map<string, Moved>();
  const text = readFileSync(file, 'utf8');
  const lines = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .filter((line) => line !== '');
  for (const raw of lines) {
    const { at, number, decision, transfer } = JSON.parse(raw) as Line;
    if (transfer === null || (decision !== 'executed' && decision !== 'settled')) continue;
    const known = moves.get(number);
    if (known === undefined) {
      const { id, status, amount, currency, destination } = transfer;
      moves.set(number, { executed: 1, id, status, amount, currency, destination, at: Date.parse(at) });
      continue;
    }
    if (decision === 'executed') known.executed += 1;
    known.status = transfer.status;
  }
  return { moves, lines: lines.length };
}
