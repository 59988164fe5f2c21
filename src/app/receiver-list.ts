import { z } from 'zod';
import { isNetwork } from '../gateway/networks.ts';
import { parseReceiverUrl, type ReceiverAddress } from '../gateway/receivers.ts';

/** `name=address`, with blanks between them: an address may hold any other character. */
export const receiverList = z
  .string()
  .transform((text) => text.trim().split(/\s+/).map(addressOf))
  .refine((all) => all.every(({ name, url }) => /^[a-z0-9-]+$/.test(name) && parseReceiverUrl(url) !== null), {
    error: 'name=address with blanks between them, names of a-z, 0-9 and -, http or https without user and fragment',
  })
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'each receiver once');

/** Addresses and networks, with blanks or commas between them. */
export const networkList = z
  .string()
  .transform((text) => text.split(/[\s,]+/).filter((part) => part !== ''))
  .refine((all) => all.every(isNetwork), 'addresses or networks such as 10.20.0.0/16, with blanks between them');

function addressOf(text: string): ReceiverAddress {
  const at = text.indexOf('=');
  return { name: text.slice(0, Math.max(0, at)), url: text.slice(at + 1) };
}
