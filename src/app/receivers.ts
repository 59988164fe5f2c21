import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Receivers } from '../gateway/port.ts';
import { createReceivers, type Receiver, type ReceiverAddress } from '../gateway/receivers.ts';
import { isWebhookSecret } from '../gateway/webhook-signature.ts';
import type { Audience } from '../jobs/job.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Config } from './config.ts';

/** Who a worker tells of keys that close: names, and no secret. */
export function audienceOf({ receivers }: Config): Audience {
  return { receivers: receivers.addresses.map(({ name }) => name), source: receivers.source };
}

/**
 * Opens the receivers that ONCEPER_RECEIVERS names, with their secrets; undefined where it names none. The caller closes them.
 * @throws OnceperError `receiver_secrets`, `receiver_address`.
 */
export function openReceivers(config: Config): Receivers | undefined {
  const receivers = knownReceivers(config);
  const { timeoutMs, networks } = config.receivers;
  return receivers.length === 0 ? undefined : createReceivers(receivers, { timeoutMs, networks });
}

/**
 * The configured receivers with the secrets that ONCEPER_RECEIVER_SECRETS holds.
 * @throws OnceperError `receiver_secrets` naming the receiver, never a secret.
 */
export function knownReceivers({ receivers }: Config): readonly Receiver[] {
  const { addresses, secrets: given } = receivers;
  if (addresses.length === 0) return [];
  const secrets = readSecrets(given);
  return addresses.map((address) => {
    const own = [secrets[address.name] ?? []].flat();
    if (own.length === 0) throw unusable(`receiver ${address.name} has no secret`, address);
    if (own.length > 2) throw unusable(`receiver ${address.name} has more than two secrets`, address);
    if (!own.every(isWebhookSecret)) {
      throw unusable(`a secret of receiver ${address.name} is not whsec_ and base64 of at least 24 bytes`, address);
    }
    return { ...address, secrets: own };
  });
}

const secretsShape = z.record(z.string(), z.union([z.string(), z.array(z.string())]));
type Secrets = z.infer<typeof secretsShape>;

/** The variable holds the object itself, or names the file that holds it. A parser's words could repeat a secret. */
function readSecrets(given: string | null): Secrets {
  if (given === null) throw unusable('ONCEPER_RECEIVER_SECRETS is not set');
  const isFile = !given.trimStart().startsWith('{');
  const parsed = secretsShape.safeParse(jsonOf(isFile ? textOf(given) : given));
  if (parsed.success) return parsed.data;
  throw unusable(`${isFile ? given : 'ONCEPER_RECEIVER_SECRETS'} is no JSON object of receivers and their secrets`);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw unusable(`${file}, which ONCEPER_RECEIVER_SECRETS names, can’t be read`);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function unusable(message: string, address?: ReceiverAddress): OnceperError {
  const name = address?.name ?? 'accounting';
  return new OnceperError({
    code: 'receiver_secrets',
    message,
    remedy: `make one by echo "whsec_$(openssl rand -base64 32)", and write {"${name}":"whsec_…"} into a file that ONCEPER_RECEIVER_SECRETS names`,
    at: 'ONCEPER_RECEIVER_SECRETS',
  });
}
