import Stripe from 'stripe';
import { z } from 'zod';
import { OnceperError } from '../kernel/error.ts';
import { foreignText } from './foreign-text.ts';
import type { FoundTransfer, Gateway } from './port.ts';
import { minorAmount, stripeAmount } from './stripe/amount.ts';
import { listFault, lookUpAnswer, type ReadTransfer, sendAnswer } from './stripe/answers.ts';
import { createTransport, type Transport } from './stripe/transport.ts';
import { parseTransfer, unreadable } from './transfer.ts';

export interface StripeGatewayOptions {
  /** A secret or restricted key; never printed. */
  readonly key: string;
  /** Stripe's API, or a stand-in for it: plain http only on this machine, for the key travels in a header. */
  readonly url?: string;
  /** At least 24 h by Stripe's promise; afterwards the same key is a new request. */
  readonly keyWindowMs: number;
  readonly visibilityDelayMs: number;
  readonly timeoutMs: number;
  readonly connections?: number;
  /** The connected account of a destination, null where there is none: then nothing is sent. Without it they are the same. */
  readonly accountOf?: (destination: string) => string | null;
}

const STRIPE = 'https://api.stripe.com';
/** Stripe takes keys of 255 characters; the rest is room for what keyOf adds. */
const MAX_NUMBER_LENGTH = 245;
const MAX_PAGE = 100;
const DESTINATION = 'onceper_destination';

/** The parts of a transfer that are read; Stripe may state more. */
const transferShape = z.object({
  id: foreignText(),
  amount: z.number(),
  amount_reversed: z.number(),
  currency: z.string(),
  destination: foreignText(),
  reversed: z.boolean(),
  transfer_group: foreignText().nullable(),
  metadata: z.record(z.string(), z.string()),
});

/**
 * Stripe as a counterparty, over its official package: a payout is a transfer to a connected account, its number the
 * idempotency key and the transfer group, by which it is looked up. One call is one exchange; the package's retries are off.
 * What Stripe can't be asked (no account, an amount that it does not keep) is `unsent`, with a code.
 * @throws OnceperError `gateway_url`, `stripe_key`; both without repeating what was given.
 */
export function createStripeGateway(options: StripeGatewayOptions): Gateway {
  const base = parseBase(options.url ?? STRIPE);
  const { keyWindowMs, visibilityDelayMs, timeoutMs } = options;
  const transport = createTransport(base.origin, timeoutMs, options.connections ?? 32);
  const stripe = new Stripe(checkedKey(options.key), {
    httpClient: transport.httpClient,
    host: base.hostname,
    protocol: base.protocol === 'http:' ? 'http' : 'https',
    maxNetworkRetries: 0,
    timeout: timeoutMs,
    telemetry: false,
  });
  const accountOf = options.accountOf ?? ((destination: string) => destination);
  const read: ReadTransfer = (stated) => readTransfer(stated, accountOf);
  return {
    properties: { name: 'stripe', keyWindowMs, visibilityDelayMs, timeoutMs, maxNumberLength: MAX_NUMBER_LENGTH },
    async send(number, body, signal, repeats = 0) {
      const asked = paramsOf(body, accountOf);
      if (typeof asked === 'string') return { kind: 'unsent', code: asked };
      const create = () => stripe.transfers.create(asked, { idempotencyKey: keyOf(number, repeats) });
      return sendAnswer(await transport.call(create, signal), read);
    },
    async lookUp(number, signal) {
      const list = async () => stripe.transfers.list({ transfer_group: number, limit: MAX_PAGE });
      return lookUpAnswer(number, await transport.call(list, signal), read);
    },
    list: (range) => oldestFirst(stripe, transport, read, range),
    close: () => transport.close(),
  };
}

/**
 * Stripe saves a refusal for its key, a lack of balance too, and repeats it for as long as it knows the key. Each repeat proves
 * that this key will never pay; the next one is made of the number and their count, so that every process makes the same.
 */
function keyOf(number: string, repeats: number): string {
  return repeats === 0 ? number : `${number}:again-${repeats}`;
}

/** What the create is asked with: the same body gives the same parameters, as Stripe demands of a repeated key. */
function paramsOf(
  body: string,
  accountOf: (destination: string) => string | null,
): Stripe.TransferCreateParams | 'malformed_body' | 'stripe_no_account' | 'stripe_amount' {
  const transfer = parseTransfer(body);
  if (transfer === null) return 'malformed_body';
  const account = accountOf(transfer.destination);
  if (account === null) return 'stripe_no_account';
  const amount = stripeAmount(transfer.amount, transfer.currency);
  if (amount === null) return 'stripe_amount';
  return {
    amount,
    currency: transfer.currency.toLowerCase(),
    destination: account,
    transfer_group: transfer.reference,
    metadata: { [DESTINATION]: transfer.destination },
  };
}

/** Our name of the destination is believed only where it leads to the account that Stripe says it paid. */
function readTransfer(stated: unknown, accountOf: (destination: string) => string | null): FoundTransfer | null {
  const parsed = transferShape.safeParse(stated);
  if (!parsed.success) return null;
  const { id, destination: account, transfer_group: group, metadata } = parsed.data;
  const currency = parsed.data.currency.toUpperCase();
  const amount = minorAmount(parsed.data.amount, currency);
  if (amount === null) return null;
  const named = metadata[DESTINATION];
  const destination = named !== undefined && accountOf(named) === account ? named : account;
  return { id, status: statusOf(parsed.data), amount, currency, destination, reference: group ?? id };
}

/** Stripe states what came back beside what was sent: all of it is a return, and anything else a person's. */
function statusOf(stated: Pick<z.infer<typeof transferShape>, 'amount' | 'amount_reversed' | 'reversed'>): string {
  if (stated.amount_reversed === stated.amount && stated.reversed) return 'returned';
  return stated.amount_reversed > 0 || stated.reversed ? 'returned_in_part' : 'succeeded';
}

type Range = Parameters<Gateway['list']>[0];

/**
 * Stripe lists newest first. Once a transfer is known, those made after it are asked for from its side; to find the oldest
 * of a range, its pages are walked to their end, and only the last ones kept.
 */
async function oldestFirst(
  stripe: Stripe,
  transport: Transport,
  read: ReadTransfer,
  range: Range,
): ReturnType<Gateway['list']> {
  const limit = Math.min(MAX_PAGE, range.limit);
  const seconds = (iso: string) => Math.ceil(Date.parse(iso) / 1_000);
  const created = { gte: seconds(range.from), lt: seconds(range.to) };
  const page = async (where: Stripe.TransferListParams) => {
    const called = await transport.call(async () => stripe.transfers.list({ created, ...where }));
    if (called.value === null) throw listFault(called);
    const transfers = called.value.data.map(
      (stated) => read(stated) ?? unreadable(stated.id, stated.transfer_group ?? stated.id),
    );
    return { transfers, hasMore: called.value.has_more };
  };
  if (range.after !== undefined) {
    const { transfers, hasMore } = await page({ ending_before: range.after, limit });
    return { transfers: transfers.toReversed(), hasMore };
  }
  let seen = 0;
  let oldest: FoundTransfer[] = [];
  for (let cursor: string | undefined; ; cursor = oldest.at(-1)?.id) {
    const { transfers, hasMore } = await page({
      limit: MAX_PAGE,
      ...(cursor === undefined ? {} : { starting_after: cursor }),
    });
    seen += transfers.length;
    oldest = [...oldest, ...transfers].slice(-limit);
    if (!hasMore || transfers.length === 0) return { transfers: oldest.toReversed(), hasMore: seen > limit };
  }
}

function checkedKey(key: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  throw new OnceperError({
    code: 'stripe_key',
    message: 'the Stripe key is empty or holds what no key does',
    remedy: 'copy the secret or restricted key from Stripe’s dashboard, without spaces',
  });
}

const OWN_MACHINE = new Set(['127.0.0.1', 'localhost', '[::1]']);

function parseBase(url: string): URL {
  const base = URL.canParse(url) ? new URL(url) : null;
  const isBare = base !== null && `${base.origin}/` === base.href;
  if (isBare && (base.protocol === 'https:' || (base.protocol === 'http:' && OWN_MACHINE.has(base.hostname))))
    return base;
  throw new OnceperError({
    code: 'gateway_url',
    message: 'the address of Stripe’s API is no bare https origin, nor http on this machine',
    remedy: `leave it unset for ${STRIPE}, or write http://127.0.0.1:12111 for a stand-in`,
  });
}
