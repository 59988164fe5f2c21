import { z } from 'zod';
import { DELIVERY_DEFAULTS, type DeliveryTerms } from '../kernel/delivery.ts';
import { OnceperError } from '../kernel/error.ts';
import { NOTICE_DEFAULTS, type NoticeTerms } from '../kernel/notice.ts';
import { count, wait } from './variable-shapes.ts';

/** How long a relay goes on by itself, towards the counterparty and towards receivers of webhooks. */
export interface DeliveryConfig {
  readonly payouts: Pick<DeliveryTerms, 'budget' | 'backOff'>;
  readonly notices: NoticeTerms;
  /** Messages a second to each receiver, for each relay; null sets no limit. */
  readonly noticesPerSecond: number | null;
  /** How long after an event the counterparty may still send its webhook. */
  readonly webhooksRepeatedMs: number;
}

export const deliveryVariables = {
  ONCEPER_GATEWAY_TRIES: count.default(DELIVERY_DEFAULTS.budget.tries),
  ONCEPER_GATEWAY_TRY_FOR: wait.default(DELIVERY_DEFAULTS.budget.timeMs),
  ONCEPER_GATEWAY_LOOK_UPS: count.default(DELIVERY_DEFAULTS.budget.lookUps),
  ONCEPER_GATEWAY_BACK_OFF: wait.default(DELIVERY_DEFAULTS.backOff.baseMs),
  ONCEPER_GATEWAY_BACK_OFF_CAP: wait.default(DELIVERY_DEFAULTS.backOff.capMs),
  ONCEPER_RECEIVER_TRIES: count.default(NOTICE_DEFAULTS.budget.tries),
  ONCEPER_RECEIVER_TRY_FOR: wait.default(NOTICE_DEFAULTS.budget.timeMs),
  ONCEPER_RECEIVER_BACK_OFF: wait.default(NOTICE_DEFAULTS.backOff.baseMs),
  ONCEPER_RECEIVER_BACK_OFF_CAP: wait.default(NOTICE_DEFAULTS.backOff.capMs),
  ONCEPER_RECEIVER_RATE: count.optional(),
  ONCEPER_WEBHOOK_REPEATS_FOR: wait.default(30 * 86_400_000),
};

const shape = z.object(deliveryVariables);
type Given = z.infer<typeof shape>;

/** Throws OnceperError `bad_configuration` where a back-off's cap lies below its first wait. */
export function deliveryOf(given: Given): DeliveryConfig {
  refuseLowCap('ONCEPER_GATEWAY_BACK_OFF', given.ONCEPER_GATEWAY_BACK_OFF, given.ONCEPER_GATEWAY_BACK_OFF_CAP);
  refuseLowCap('ONCEPER_RECEIVER_BACK_OFF', given.ONCEPER_RECEIVER_BACK_OFF, given.ONCEPER_RECEIVER_BACK_OFF_CAP);
  return {
    payouts: {
      budget: {
        tries: given.ONCEPER_GATEWAY_TRIES,
        timeMs: given.ONCEPER_GATEWAY_TRY_FOR,
        lookUps: given.ONCEPER_GATEWAY_LOOK_UPS,
      },
      backOff: { baseMs: given.ONCEPER_GATEWAY_BACK_OFF, capMs: given.ONCEPER_GATEWAY_BACK_OFF_CAP },
    },
    notices: {
      budget: { tries: given.ONCEPER_RECEIVER_TRIES, timeMs: given.ONCEPER_RECEIVER_TRY_FOR },
      backOff: { baseMs: given.ONCEPER_RECEIVER_BACK_OFF, capMs: given.ONCEPER_RECEIVER_BACK_OFF_CAP },
    },
    noticesPerSecond: given.ONCEPER_RECEIVER_RATE ?? null,
    webhooksRepeatedMs: given.ONCEPER_WEBHOOK_REPEATS_FOR,
  };
}

/** Throws OnceperError `bad_configuration` where the longest wait lies below the first. */
export function refuseLowCap(name: string, baseMs: number, capMs: number): void {
  if (capMs >= baseMs) return;
  throw new OnceperError({
    code: 'bad_configuration',
    message: `${name}_CAP: the longest wait of ${capMs} ms lies below the first, ${baseMs} ms`,
    remedy: `raise ${name}_CAP, or lower ${name}`,
    at: `${name}_CAP`,
  });
}
