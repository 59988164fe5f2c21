import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { createHttpGateway } from '../gateway/http.ts';
import type { Gateway } from '../gateway/port.ts';
import { createStripeGateway } from '../gateway/stripe.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Config } from './config.ts';
import { readCredentials, refuseFiles } from './gateway-credentials.ts';
import { isLoopback } from './loopback.ts';

/** The counterparty that is configured, and what a log may call it. */
export interface ChosenGateway {
  readonly gateway: Gateway;
  readonly address: string;
  readonly connections: number;
}

/**
 * Opens the counterparty that ONCEPER_GATEWAY names; the caller closes it.
 * @throws OnceperError `gateway_unset`, `gateway_url`, `gateway_credentials`, `stripe_key`, `stripe_accounts`.
 */
export function openGateway({ gateway: chosen }: Config): ChosenGateway {
  const { kind, url, stripeKey, stripeAccounts, files, ...terms } = chosen;
  const { connections } = terms;
  if (kind === 'stripe') {
    refuseFiles(files, ['token', 'cert', 'key', 'ca'], 'Stripe knows us by ONCEPER_STRIPE_KEY alone');
    if (stripeKey === null)
      throw unset('ONCEPER_STRIPE_KEY', 'set it to a restricted key that may read and make transfers');
    const gateway = createStripeGateway({
      key: stripeKey,
      ...(url === null ? {} : { url }),
      ...(stripeAccounts === null ? {} : { accountOf: accountsOf(stripeAccounts) }),
      ...terms,
    });
    return { gateway, address: url ?? 'stripe', connections };
  }
  if (url === null) {
    throw unset(
      'ONCEPER_GATEWAY_URL',
      'npx onceper gateway starts a simulator and prints its address; set ONCEPER_GATEWAY_URL to it',
    );
  }
  refusePlainHttp(chosen);
  if (isPlain(url)) refuseFiles(files, ['cert', 'key', 'ca'], 'nobody looks at certificates over plain http');
  return { gateway: createHttpGateway({ url, ...terms, ...readCredentials(files) }), address: url, connections };
}

/** Refuses an address to which payouts would go readable by anyone on the way. Throws OnceperError `gateway_url`. */
export function refusePlainHttp({ url, plainHttp }: Pick<Config['gateway'], 'url' | 'plainHttp'>): void {
  if (url === null || !isPlain(url) || plainHttp === 'anywhere') return;
  if (!isLoopback(new URL(url).hostname)) throw readableByAnyone();
}

function isPlain(url: string): boolean {
  return new URL(url).protocol === 'http:';
}

function readableByAnyone(): OnceperError {
  return new OnceperError({
    code: 'gateway_url',
    message: 'the counterparty is on another machine, and over plain http anyone on the way reads and alters payouts',
    remedy: 'write https, or set ONCEPER_GATEWAY_PLAIN_HTTP=anywhere where the way itself is yours',
    at: 'ONCEPER_GATEWAY_URL',
  });
}

/** One object of a JSON file: our destination, and Stripe's account of it. */
const accountsShape = z.record(z.string().min(1), z.string().regex(/^acct_\w+$/));

function accountsOf(file: string): (destination: string) => string | null {
  try {
    const accounts = new Map(Object.entries(accountsShape.parse(JSON.parse(readFileSync(file, 'utf8')))));
    return (destination) => accounts.get(destination) ?? null;
  } catch (cause) {
    throw new OnceperError({
      code: 'stripe_accounts',
      message: `${file} can’t be read as destinations and their Stripe accounts`,
      remedy: 'write one JSON object, for example {"m-1001":"acct_1032D82eZvKYlo2C"}',
      at: 'ONCEPER_STRIPE_ACCOUNTS',
      cause,
    });
  }
}

function unset(at: string, remedy: string): OnceperError {
  return new OnceperError({ code: 'gateway_unset', message: `no gateway: ${at} is not set`, remedy, at });
}
