import { z } from 'zod';
import { parseReceiverUrl, type ReceiverAddress } from '../gateway/receivers.ts';

/** `name=address`, with blanks between them: an address may hold any other character. */
export const receiverList = z
  .string()
  .transform((text) => text.trim().split(/\s+/).map(addressOf))
  .refine((all) => all.every(({ name, url }) => /^[a-z0-9-]+$/.test(name) && parseReceiverUrl(url) !== null), {
    error: 'name=address with blanks between them, names of a-z, 0-9 and -, http or https without user and fragment',
  })
  .refine((all) => new Set(all.map(({ name }) => name)).size === all.length, 'each receiver once');

function addressOf(text: string): ReceiverAddress {
  const at = text.indexOf('=');
  return { name: text.slice(0, Math.max(0, at)), url: text.slice(at + 1) };
}
