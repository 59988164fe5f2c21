import { afterEach } from 'vitest';
import type { Gateway, Receivers } from '../../src/gateway/port.ts';
import type { RelayOptions, RelayServices } from '../../src/relay/plan.ts';
import { relayOnce } from '../../src/relay/relay.ts';
import { type EffectCounts, noticeCounts } from '../../src/store/outbox-read.ts';
import type { TestLedger } from '../support/ledger-rows.ts';
import type { TestReceiver } from '../support/receiver.ts';
import type { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, receiversAt, servicesOf } from './harness.ts';

/** Short back-offs for notices too. */
export const QUICK: RelayOptions = { ...FAST, notices: { backOff: { baseMs: 5, capMs: 40 } } };

/** Makes a relay's services towards the file's bank and receivers of these names; their adapters are closed after each test. */
export function useServices(ledger: TestLedger, bank: ReturnType<typeof useTestBank>) {
  const opened: (Gateway | Receivers)[] = [];
  afterEach(async () => {
    for (const adapter of opened.splice(0)) await adapter.close();
  });
  return async (told: Readonly<Record<string, TestReceiver>>, timeoutMs = 1_000): Promise<RelayServices> => {
    const { url } = await bank.start({});
    const gateway = gatewayTo(url);
    const urls = Object.fromEntries(Object.entries(told).map(([name, { url: own }]) => [name, own]));
    const receivers = receiversAt(urls, timeoutMs);
    opened.push(gateway, receivers);
    return { ...servicesOf(ledger, gateway), receivers };
  };
}

/** Relays until the notices of the key need the relay no more; returns their counts by state. */
export async function tellAll(services: RelayServices, key: string, options = QUICK): Promise<EffectCounts> {
  return waitFor(
    async () => {
      await relayOnce(services, options);
      const counts = await noticeCounts(services.db, key);
      const isOver = counts.pending === undefined && counts.sending === undefined && counts.unknown === undefined;
      return isOver ? counts : null;
    },
    { what: `every notice of ${key} to have its fate` },
  );
}
