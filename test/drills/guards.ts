import type { Edit } from './drill-process.ts';

/** How a drill's guard is taken away, in a copy of the sources, and a fact that must then be seen otherwise. */
export interface Guard {
  readonly drill: string;
  readonly off: readonly Edit[];
  readonly differs: string;
}

/** What "unique per request" is often read as: a number for each try. */
const NEW_NUMBER_EACH_TRY: Edit = {
  file: 'src/gateway/http.ts',
  from: 'async send(number, body, signal) {',
  to: 'async send(given, text, signal) { const number = `${given}:${Math.random()}`; const body = text.replace(given, number);',
};

export const GUARDS: readonly Guard[] = [
  {
    drill: 'effect-without-record',
    off: [{ file: 'src/store/slices.ts', from: 'await work(tx, range)', to: 'await work(db, range)' }],
    differs: 'business rows left by them',
  },
  {
    drill: 'record-without-effect',
    off: [NEW_NUMBER_EACH_TRY],
    differs: 'numbers at the counterparty that nobody recorded',
  },
  {
    drill: 'key-outlived',
    off: [
      {
        file: 'src/kernel/delivery.ts',
        from: 'return terms.keyWindowMs - terms.timeoutMs;',
        to: 'return terms.keyWindowMs + 86_400_000;',
      },
    ],
    differs: 'numbers sent again after the window',
  },
  {
    drill: 'backfill-new-key',
    off: [
      {
        file: 'migrations/0001_ledger.sql',
        from: "constraint action_key_derives_from_period check (key = job || ':' || period || coalesce(':adj-' || adj, ''))",
        to: 'constraint action_key_derives_from_period check (true)',
      },
    ],
    differs: 'a key that ends in :retry1',
  },
];
