import type { Client } from '@temporalio/client';
import type { Registry } from '../jobs/registry.ts';
import { checkTerms } from '../kernel/delivery.ts';
import { OnceperError } from '../kernel/error.ts';
import { longestTryingMs } from '../kernel/retention.ts';
import { checkRetention, type DeliveryHorizons } from '../ops/doctor-temporal.ts';
import type { Database } from '../store/database.ts';
import type { Config } from './config.ts';

const DAY_MS = 86_400_000;

/** How long what leaves, and what comes back, may still concern a key, by the configuration of the relay. */
export function deliveryHorizons({ payouts, notices, webhooksRepeatedMs }: Config['delivery']): DeliveryHorizons {
  const messages = { ...notices.budget, lookUps: 0 };
  return {
    retryDays: Math.ceil(longestTryingMs(payouts.budget, payouts.backOff.capMs) / DAY_MS),
    messageDays: Math.ceil(longestTryingMs(messages, notices.backOff.capMs) / DAY_MS),
    webhookDays: Math.ceil(webhooksRepeatedMs / DAY_MS),
  };
}

/** Throws OnceperError `gateway_terms` unless visibility delay < last automatic re-send < key window. */
export function checkGatewayTerms({ gateway, delivery }: Pick<Config, 'gateway' | 'delivery'>): void {
  const { keyWindowMs, visibilityDelayMs, timeoutMs } = gateway;
  checkTerms({ keyWindowMs, visibilityDelayMs, timeoutMs, maxNumberLength: 1, ...delivery.payouts });
}

/**
 * Keys that are forgotten before the last who may ask for them would be settled again, and terms that leave no moment for a safe
 * re-send would pay twice: such a worker does not start. Throws OnceperError `retention_too_short`, `gateway_terms`.
 */
export async function refuseUnsafeTerms(
  config: Pick<Config, 'gateway' | 'delivery'>,
  { db, client, registry }: { readonly db: Database; readonly client: Client; readonly registry: Registry },
): Promise<void> {
  checkGatewayTerms(config);
  const delivery = deliveryHorizons(config.delivery);
  for (const check of await checkRetention(db, client, { registry, delivery })) {
    if (check.state !== 'fail') continue;
    throw new OnceperError({
      code: 'retention_too_short',
      message: check.detail,
      remedy: check.remedy ?? 'npx onceper doctor',
      at: check.check,
    });
  }
}
