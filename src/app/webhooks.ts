import { once } from 'node:events';
import { createWebhookSigner } from '../gateway/webhook-signature.ts';
import type { Registry } from '../jobs/registry.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Event } from '../observability/events.ts';
import type { WebhookEvent } from '../relay/webhooks/apply.ts';
import { startWebhookServer, type WebhookRefused } from '../relay/webhooks/server.ts';
import { clockOf } from '../store/database.ts';
import type { Config } from './config.ts';
import { runProcess } from './process.ts';
import { createDatabase } from './services.ts';

/**
 * `onceper webhooks`: receives the counterparty's webhooks until SIGTERM, finishes those in hand and returns. A process of
 * its own, so that what faces the network holds no gateway's credentials and can be stopped without stopping deliveries; any
 * number may run. Throws OnceperError `webhook_secret_unset`, `webhook_secret`, `port_taken`, `database_unreachable`,
 * `start_timed_out`.
 */
export async function runWebhooksProcess(
  config: Config,
  jobs: Registry,
  options: { readonly port: number; readonly host: string; readonly onListening: (url: string) => void },
): Promise<void> {
  const signer = createWebhookSigner(requireSecret(config));
  await runProcess(config, 'webhooks', async ({ log, draining, start, atEnd }) => {
    const db = createDatabase(config, log, { name: 'onceper webhooks', max: 8 });
    atEnd('PostgreSQL', () => db.close());
    await start('PostgreSQL', () => clockOf(db));
    const { port, host } = options;
    const onEvent = (event: WebhookEvent | WebhookRefused) => log(entryOf(event));
    const server = await startWebhookServer({ db, jobs }, { port, host, signer, onEvent });
    log({ event: 'webhooks_started', url: server.url });
    options.onListening(server.url);
    if (!draining.aborted) await once(draining, 'abort');
    await server.stop();
  });
}

function requireSecret({ webhookSecret }: Config): string {
  if (webhookSecret !== null) return webhookSecret;
  throw new OnceperError({
    code: 'webhook_secret_unset',
    message: 'no webhook can be told from a forged one: ONCEPER_WEBHOOK_SECRET is not set',
    remedy: 'set ONCEPER_WEBHOOK_SECRET to the secret that the counterparty signs with',
    at: 'ONCEPER_WEBHOOK_SECRET',
  });
}

function entryOf(event: WebhookEvent | WebhookRefused): Event {
  switch (event.kind) {
    case 'decided': {
      const { id, number, decision, code, state } = event;
      return { event: 'webhook_decided', id, number, decision, code, state };
    }
    case 'refused':
      return { event: 'webhook_refused', status: event.status, why: event.why };
    case 'fault':
      return { event: 'webhook_fault', id: event.id, code: event.code, message: event.message };
  }
}
