import { readJournal } from '../gateway/simulator/journal.ts';
import type { StatedSettings } from '../gateway/simulator/settings.ts';
import { OnceperError } from '../kernel/error.ts';

/** Tells a running simulator how to behave from now on; what is not stated is as in an honest counterparty. */
export async function setModes(gatewayUrl: string, settings: StatedSettings): Promise<void> {
  const answer = await fetch(`${gatewayUrl}/control/modes`, { method: 'PUT', body: JSON.stringify(settings) });
  if (answer.ok) return;
  throw new OnceperError({
    code: 'simulator_settings',
    message: `the simulator answered ${answer.status}: ${await answer.text()}`,
    remedy: 'see src/gateway/simulator/settings.ts for the settings and modes',
  });
}

/** How many transfers the counterparty was asked for so far, whatever it made of them. */
export async function receivedPosts(gatewayUrl: string): Promise<number> {
  const answer = await fetch(`${gatewayUrl}/control/counts`);
  return ((await answer.json()) as { posts: number }).posts;
}

/** How many look-ups the counterparty was asked for so far. */
export async function receivedLookUps(gatewayUrl: string): Promise<number> {
  const answer = await fetch(`${gatewayUrl}/control/counts`);
  return ((await answer.json()) as { lookUps: number }).lookUps;
}

/** How often each number was sent to the counterparty, and how often it acted on it, by its journal. */
export function sendsByNumber(journal: string): ReadonlyMap<string, { readonly sent: number; readonly acted: number }> {
  const sends = new Map<string, { sent: number; acted: number }>();
  readJournal(journal, ({ number, decision }) => {
    if (decision === 'settled') return;
    const { sent, acted } = sends.get(number) ?? { sent: 0, acted: 0 };
    sends.set(number, { sent: sent + 1, acted: acted + (decision === 'executed' ? 1 : 0) });
  });
  return sends;
}
