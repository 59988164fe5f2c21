import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import { MODES, type Mode } from '../../src/gateway/simulator/settings.ts';
import type { EffectState } from '../../src/kernel/transitions.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { fates, insertEffect, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { age, deliverAll, FAST, gatewayTo, servicesOf } from './harness.ts';

/** Where the first relay is lost with a number in its hands: it never comes back from there. */
const POINTS = ['nowhere', 'before_bytes', 'after_bytes', 'after_answer', 'twice'] as const;
type Point = (typeof POINTS)[number];

const ledger = useTestLedger(20);
const bank = useTestBank();
const gateways: Gateway[] = [];
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
});

const subjectOf = (mode: Mode, point: Point) => `${mode}-${point}`.replaceAll('_', '-');
const never = new Promise<never>(() => undefined);

/** A counterparty from which a relay does not return, at each number's own point. */
function losing(real: Gateway, points: ReadonlyMap<string, Point>, lost: Set<string>): Gateway {
  const isLost = (number: string): Promise<never> => {
    lost.add(number);
    return never;
  };
  return {
    ...real,
    async send(number, body, signal) {
      const point = points.get(number);
      if (point === 'before_bytes') return isLost(number);
      const answer = real.send(number, body, signal);
      if (point === 'after_bytes') return isLost(number);
      const answered = await answer;
      return point === 'nowhere' ? answered : isLost(number);
    },
  };
}

/** The second relay is lost in its look-up of the numbers whose point is `twice`. */
function losingLookUps(real: Gateway, points: ReadonlyMap<string, Point>, lost: Set<string>): Gateway {
  return {
    ...real,
    async lookUp(number, signal) {
      const answer = await real.lookUp(number, signal);
      if (points.get(number) !== 'twice') return answer;
      lost.add(number);
      return never;
    },
  };
}

/** What must become of a number: a refusal or a success whose answer was lost is judged by what a look-up shows. */
function fateOf(mode: Mode, point: Point): EffectState {
  if (mode === 'refused' && point === 'nowhere') return 'failed';
  if (mode === 'returned' && point !== 'nowhere' && point !== 'before_bytes') return 'returned';
  return 'succeeded';
}

/** Runs one relay until it is lost with `expected` numbers in its hands and has recorded all others that it took. */
async function lostRelay(gateway: (lost: Set<string>) => Gateway, expected: number): Promise<void> {
  const lost = new Set<string>();
  let left = 0;
  void relayOnce(servicesOf(ledger, gateway(lost)), {
    ...FAST,
    concurrency: 100,
    onEvent(event) {
      if (event.kind === 'taken') left += event.count;
      if (event.kind === 'recorded') left -= 1;
    },
  });
  await waitFor(() => lost.size === expected && left === expected, {
    what: `a relay to be lost with ${expected} in hand`,
  });
}

test('twelve modes, lost at every point of a relay: one transfer a number, and the right end of each', async () => {
  const points = new Map<string, Point>();
  const modes: Record<string, Mode[]> = {};
  const ends: string[] = [];
  for (const mode of MODES) {
    for (const point of POINTS) {
      const number = await insertEffect(ledger.db, { key, subject: subjectOf(mode, point) });
      points.set(number, point);
      modes[number] = [mode, 'ok'];
      ends.push(`${number} ${fateOf(mode, point)}`);
    }
  }
  const simulator = await bank.start({ numbers: modes, delayMs: 200, retryAfterSeconds: 0 });
  const real = gatewayTo(simulator.url, { timeoutMs: 4_000 });
  gateways.push(real);
  const patient = { ...FAST, concurrency: 100 };
  await lostRelay((lost) => losing(real, points, lost), MODES.length * 4);
  await age(ledger, key, 0);
  await lostRelay((lost) => losingLookUps(real, points, lost), MODES.length);
  for (const point of POINTS) {
    const number = `${key}:${subjectOf('pending', point)}:GBP:payout`;
    const settled = () =>
      fetch(`${simulator.url}/control/settle`, {
        method: 'POST',
        body: JSON.stringify({ number, status: 'succeeded' }),
      });
    await waitFor(async () => (await settled()).ok, { what: `${number} to be settled` });
  }
  await age(ledger, key, 0);
  await deliverAll(servicesOf(ledger, real), key, patient);
  const { rows } = await ledger.db.query<{ end: string }>(
    `select number || ' ' || state as end from onceper.outbox where key = $1 order by number`,
    [key],
  );
  expect(rows.map((row) => row.end)).toEqual(ends.toSorted());
  const transfers = bank.executed();
  expect([...transfers.values()].filter((times) => times !== 1)).toEqual([]);
  expect(transfers.size).toBe(ends.filter((end) => !end.endsWith(' failed')).length);
  const posted = ends.flatMap((end) =>
    end.endsWith(' returned') ? [end, end.replace(/returned$/, 'succeeded')] : [end],
  );
  expect(await fates(ledger.db)).toEqual(posted.toSorted());
});
