import { setTimeout as delay } from 'node:timers/promises';
import { request } from 'undici';
import type { FoundTransfer } from '../port.ts';
import { createWebhookSigner, type WebhookSigner } from '../webhook-signature.ts';
import { type SimulatorSettings, shareOf } from './settings.ts';

/** Tells of transfers by webhooks, as the settings of the moment say. */
export interface Herald {
  /** Tells that a transfer has this status; `seq` is its journal entry, and names the message. */
  announce(seq: number, transfer: FoundTransfer): void;
  counts(): { readonly told: number; readonly heard: number };
}

interface Message {
  readonly id: string;
  readonly url: string;
  readonly body: string;
  readonly signer: WebhookSigner;
}

const TRIES = 8;
const RETRY_MS = 100;
const TIMEOUT_MS = 5_000;

/** A herald over the settings; `signal` ends it, and what it has not told yet with it. */
export function createHerald(settings: () => SimulatorSettings, signal: AbortSignal): Herald {
  const signers = new Map<string, WebhookSigner>();
  let told = 0;
  let heard = 0;

  const signerOf = (secret: string): WebhookSigner => {
    const signer = signers.get(secret) ?? createWebhookSigner(secret);
    signers.set(secret, signer);
    return signer;
  };

  async function tell(message: Message, afterMs: number): Promise<void> {
    await delay(afterMs, undefined, { signal });
    for (let attempt = 1; attempt <= TRIES; attempt += 1) {
      if (await isHeard(message, signal)) {
        heard += 1;
        return;
      }
      await delay(RETRY_MS * 2 ** attempt, undefined, { signal });
    }
  }

  return {
    announce(seq, transfer) {
      const { webhooks, seed } = settings();
      if (webhooks === null) return;
      const { url, secret, copies, delayMs, spreadMs } = webhooks;
      const id = `msg_${seq}`;
      const at = new Date().toISOString();
      const body = JSON.stringify({ type: `transfer.${transfer.status}`, timestamp: at, data: transfer });
      const message = { id, url, body, signer: signerOf(secret) };
      for (let copy = 1; copy <= copies; copy += 1) {
        told += 1;
        const spread = (shareOf(`${seed}:${id}:${copy}`) / 100) * spreadMs;
        // Only the end of the simulator rejects: what was not told by then is not told.
        tell(message, delayMs + spread).catch(() => undefined);
      }
    },
    counts: () => ({ told, heard }),
  };
}

/** Signed anew for each try, so that a message is fresh however long it was tried. */
async function isHeard({ id, url, body, signer }: Message, signal: AbortSignal): Promise<boolean> {
  try {
    const headers = { ...signer.sign(id, new Date(), body), 'content-type': 'application/json' };
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
    const answer = await request(url, { method: 'POST', headers, body, signal: bounded });
    await answer.body.dump();
    return answer.statusCode >= 200 && answer.statusCode < 300;
  } catch {
    return false;
  }
}
