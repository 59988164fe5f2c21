import { z } from 'zod';
import { foreignText, isForeignText } from './foreign-text.ts';
import { quoteNumericIds } from './numeric-ids.ts';
import type { FoundTransfer, Transfer } from './port.ts';

const text = z.string().min(1);

const transferFields = {
  amount: z.string().regex(/^(?:0|[1-9]\d*)$/, 'minor units as a decimal text'),
  currency: z.string().regex(/^[A-Z]{3}$/),
  destination: text,
  reference: text,
};

/** The body of POST /v1/transfers. */
const transferShape = z.object(transferFields);

/** As many digits as any amount has that a ledger of 64-bit integers can mean, and room. */
const LONGEST_AMOUNT = 40;

/** A transfer in an answer. A counterparty may say more than the contract; what it adds is dropped. */
export const foundTransferShape = z.object({
  id: foreignText(),
  status: foreignText(),
  amount: transferFields.amount.max(LONGEST_AMOUNT),
  currency: transferFields.currency,
  destination: foreignText(),
  reference: foreignText(),
});

/** A refusal. A code in another form is not taken over: it goes into logs, and free text can hold anything. */
export const errorShape = z.object({ error: z.object({ code: z.string().regex(/^[\w.-]{1,64}$/) }) });

/** The answer to a look-up. */
export const foundShape = z.object({ data: z.array(foundTransferShape) });

/**
 * A transfer of a list that can't be read. It must not go missing from a reconciliation, nor may a stranger's, whose reference
 * can be anything, stop it: it is stated under its id, with its reference where that can be read, and matches no money of ours.
 */
const unreadableShape = z
  .object({ id: foreignText(), reference: foreignText().optional().catch(undefined) })
  .transform(({ id, reference = id }): FoundTransfer => unreadable(id, reference));

/** A page of the answer to a range. */
export const pageShape = z.object({
  data: z.array(z.union([foundTransferShape, unreadableShape])),
  has_more: z.boolean(),
});

/** A transfer that is known to be there, and no more. */
export function unreadable(id: string, reference: string): FoundTransfer {
  return { id, status: 'unreadable', amount: '0', currency: 'XXX', destination: id, reference };
}

/** The transfer that a frozen body states, or null where it states none. */
export function parseTransfer(body: string): Transfer | null {
  return parseJson(body, transferShape);
}

/** The transfer of a 2xx answer, or null: cut JSON and a missing field are no answer. */
export function parseFoundTransfer(body: string): FoundTransfer | null {
  return parseStated(body, foundTransferShape);
}

const TEXTS = ['id', 'status', 'currency', 'destination', 'reference'];

/** True where something that is stated as a transfer holds, in one of its parts, a text that may not enter. */
export function holdsHarmfulText(stated: unknown): boolean {
  if (typeof stated !== 'object' || stated === null) return false;
  return TEXTS.some((name) => {
    const part: unknown = Reflect.get(stated, name);
    return typeof part === 'string' && part !== '' && !isForeignText(part);
  });
}

/** parseJson of what a counterparty states: an id that is a number keeps its digits. */
export function parseStated<T>(body: string, shape: z.ZodType<T>): T | null {
  return parseJson(quoteNumericIds(body), shape);
}

/** What `shape` makes of a JSON text, or null where the text is no JSON or has another shape. */
export function parseJson<T>(body: string, shape: z.ZodType<T>): T | null {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return null;
  }
  const parsed = shape.safeParse(value);
  return parsed.success ? parsed.data : null;
}
