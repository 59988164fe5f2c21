import { readMoves } from './checker/journal.ts';
import type { Field } from './field.ts';
import { act, type Standing, standingOf } from './operator.ts';
import { pause } from './pause.ts';

/** What came of the calm after the storm. */
export interface Healed {
  readonly seconds: number;
  /** Null where everything has come to rest; else what had not when the time was over. */
  readonly left: Standing | null;
}

const ROUND_MS = 500;
const ASK_AGAIN_MS = 8_000;

/** Every fault is over: within the time everything must come to rest, by the processes and by what the runbook says to type. */
export async function heal(field: Field, withinMs: number): Promise<Healed> {
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1_000;
  await Promise.all(Object.values(field.posts).map((post) => post.untilReady(60_000)));
  await field.weather.tell();
  const asked = new Map<string, number>();
  for (;;) {
    const standing = await standingOf(field);
    const untold = await tellAgain(field);
    const { frozen, open, waiting, delivering } = standing;
    if (!frozen && open.length === 0 && waiting === 0 && delivering === 0 && untold === 0)
      return { seconds: seconds(), left: null };
    if (performance.now() - began > withinMs) return { seconds: seconds(), left: standing };
    await act(field, standing, () => true);
    const next = open.find(
      ({ month }) => performance.now() - (asked.get(month) ?? Number.NEGATIVE_INFINITY) > ASK_AGAIN_MS,
    );
    if (!frozen && next !== undefined) {
      asked.set(next.month, performance.now());
      await field.people.type('alice', ['run', 'settlement', '--period', next.month]);
    }
    await pause(ROUND_MS);
  }
}

/**
 * A counterparty makes up its mind in the end, and tells again what nobody heard: its own death may have cut both short.
 * Returns of how many transfers the ledger believes something else.
 */
async function tellAgain({ journal, postgres, gatewayUrl }: Field): Promise<number> {
  const { moves } = readMoves(journal);
  const rows = await postgres.query<{ number: string; state: string }>(`select number, state from onceper.outbox`);
  const states = new Map(rows.map(({ number, state }) => [number, state]));
  let untold = 0;
  for (const [number, { status }] of moves) {
    const state = states.get(number);
    const isUntold = state === 'succeeded' && (status === 'returned' || status === 'failed');
    if (isUntold) untold += 1;
    if (status !== 'pending' && !isUntold) continue;
    await fetch(`${gatewayUrl}/control/settle`, {
      method: 'POST',
      body: JSON.stringify({ number, status: status === 'pending' ? 'succeeded' : status }),
    });
  }
  return untold;
}
