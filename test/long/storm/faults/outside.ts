import type { Mode } from '../../../../src/gateway/simulator/settings.ts';
import type { Draw } from '../../../../src/jobs/settlement/sample/draw.ts';
import type { Field } from '../field.ts';
import type { Kind } from './fault.ts';

/** For a while the counterparty treats a share of the transfers so. */
function mode(name: string, kind: Mode, weight: number, share: readonly [number, number], isShort = false): Kind {
  return {
    name,
    lanes: ['weather'],
    weight,
    isShort,
    strike: ({ weather }: Field, draw: Draw) =>
      weather.hold({ mix: [{ mode: kind, percent: draw.between(...share) }] }, draw.between(800, 2_500)),
  };
}

/** What the counterparty does, and the network before it and before the database. */
export const OUTSIDE_FAULTS: readonly Kind[] = [
  mode('the counterparty acts, and its answer is lost', 'drop_after', 6, [30, 90], true),
  mode('the counterparty acts, and answers 500', 'error_after', 4, [30, 90], true),
  mode('the counterparty loses the request', 'drop_before', 3, [30, 90]),
  mode('the counterparty answers 500 and does nothing', 'error_before', 3, [30, 90]),
  mode('the counterparty answers 429', 'busy', 3, [50, 100], true),
  mode('the counterparty answers after the time-out', 'slow', 4, [20, 60], true),
  mode('the counterparty’s answer is cut', 'cut', 4, [30, 90], true),
  mode('the counterparty says that it is in flight', 'in_flight', 2, [30, 90]),
  mode('the counterparty refuses a payout', 'refused', 2, [2, 6], true),
  mode('a payout is returned', 'returned', 2, [5, 15], true),
  {
    name: 'a payout is undecided, and fails or succeeds later',
    lanes: ['weather'],
    weight: 3,
    strike: ({ weather }, draw) =>
      weather.hold(
        {
          mix: [{ mode: 'pending', percent: draw.between(20, 60) }],
          settings: {
            pendingBecomes: { status: draw.percent(20) ? 'failed' : 'succeeded', afterMs: draw.between(300, 2_000) },
          },
        },
        draw.between(800, 2_500),
      ),
  },
  {
    name: 'webhooks come twice, late and out of order',
    lanes: ['webhooks'],
    weight: 4,
    isShort: true,
    strike: ({ weather }, draw) =>
      weather.hold(
        { webhooks: { copies: draw.between(2, 4), delayMs: draw.between(0, 800), spreadMs: 1_500 } },
        draw.between(1_000, 3_000),
      ),
  },
  {
    name: 'look-ups lag and fail',
    lanes: ['weather'],
    weight: 4,
    isShort: true,
    strike: ({ weather }, draw) =>
      weather.hold({ settings: { lookUpLagMs: 400, lookUpErrors: draw.between(10, 60) } }, draw.between(800, 2_500)),
  },
  {
    name: 'connections to the counterparty reset',
    lanes: ['ways'],
    weight: 4,
    isShort: true,
    strike: ({ ways }) => Promise.resolve(ways.bank.reset() > 0),
  },
  {
    name: 'the way to the counterparty is slow',
    lanes: ['ways'],
    weight: 2,
    async strike({ ways }, draw) {
      await ways.bank.slow(draw.between(50, 300), draw.between(800, 2_000));
      return true;
    },
  },
  {
    name: 'nothing gets through to the counterparty',
    lanes: ['ways'],
    weight: 3,
    async strike({ ways }, draw) {
      await ways.bank.blackHole(draw.between(500, 2_500));
      return true;
    },
  },
  {
    name: 'connections to the database reset',
    lanes: ['ways'],
    weight: 4,
    isShort: true,
    strike: ({ ways }) => Promise.resolve(ways.database.reset() > 0),
  },
  {
    name: 'the way to the database is slow',
    lanes: ['ways'],
    weight: 2,
    async strike({ ways }, draw) {
      await ways.database.slow(draw.between(5, 60), draw.between(800, 2_000));
      return true;
    },
  },
  {
    name: 'nothing gets through to the database',
    lanes: ['ways'],
    weight: 3,
    isShort: true,
    async strike({ ways }, draw) {
      await ways.database.blackHole(draw.between(500, 3_000));
      return true;
    },
  },
];
