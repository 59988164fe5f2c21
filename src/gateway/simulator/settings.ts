import { z } from 'zod';
import { isWebhookSecret } from '../webhook-signature.ts';

/**
 * How the simulator may treat one POST. `slow` holds the number in flight for `delayMs`, then acts and answers, whether or
 * not the client still listens; `drop_*` resets the connection; `cut` stops in the middle of the answer; `error_after` acts,
 * answers 500 and repeats it from memory; `pending` waits for a settle; `returned` succeeds and is returned at once.
 */
export const MODES = [
  'ok',
  'slow',
  'drop_before',
  'drop_after',
  'cut',
  'in_flight',
  'error_before',
  'error_after',
  'busy',
  'refused',
  'pending',
  'returned',
] as const;
export type Mode = (typeof MODES)[number];

const mode = z.enum(MODES);
const ms = z.int().min(0);

const settingsShape = z.strictObject({
  /** Changes which numbers the percentages fall on. */
  seed: z.int().default(1),
  /** For one number, the mode of its first, second… try; the last one holds for all later tries. */
  numbers: z.record(z.string(), z.array(mode).min(1)).default({}),
  /** Every n-th POST of all. */
  every: z.array(z.strictObject({ mode, n: z.int().min(1) })).default([]),
  /** Shares of all tries, by a hash of seed, number and try. */
  mix: z
    .array(z.strictObject({ mode, percent: z.number().min(0).max(100) }))
    .refine((mix) => mix.reduce((sum, part) => sum + part.percent, 0) <= 100, 'the percentages exceed 100')
    .default([]),
  delayMs: ms.default(3_000),
  retryAfterSeconds: ms.default(1),
  retryAfterForm: z.enum(['seconds', 'date']).default('seconds'),
  refusal: z
    .strictObject({ status: z.int().min(400).max(499), code: z.string().min(1) })
    .default({ status: 400, code: 'account_closed' }),
  /** Destinations whose accounts are closed: transfers to them are refused for good. */
  closed: z.array(z.string()).default([]),
  /** What every request, look-ups too, is answered with until it is told otherwise; without a code the body says nothing. */
  everything: z
    .strictObject({ status: z.int().min(400).max(599), code: z.string().min(1).nullable().default(null) })
    .nullable()
    .default(null),
  /** How long after acting a transfer is missing from look-ups. */
  lookUpLagMs: ms.default(0),
  /** Percentage of look-ups that answer 500. */
  lookUpErrors: z.number().min(0).max(100).default(0),
  /** After this the number is forgotten, and the same number acts again; null remembers for good. */
  forgetAfterMs: ms.nullable().default(null),
  /** What a transfer made by `pending` becomes, `afterMs` later; null waits for POST /control/settle. */
  pendingBecomes: z
    .strictObject({ status: z.enum(['succeeded', 'failed', 'returned']), afterMs: ms })
    .nullable()
    .default(null),
  /**
   * Whom to tell of every status, and how badly: `copies` of each message, each `delayMs` and up to `spreadMs` late, so that
   * with a spread they overtake each other. Null tells nobody.
   */
  webhooks: z
    .strictObject({
      url: z.url(),
      secret: z.string().refine(isWebhookSecret, 'whsec_ and base64 of at least 24 bytes'),
      copies: z.int().min(1).max(10).default(1),
      delayMs: ms.default(0),
      spreadMs: ms.default(0),
    })
    .nullable()
    .default(null),
});

export type SimulatorSettings = z.infer<typeof settingsShape>;

/** What a caller states of the settings; the rest are the defaults, under which every transfer succeeds at once. */
export type StatedSettings = z.input<typeof settingsShape>;

/** The settings of a JSON value, or what is wrong with it. */
export function parseSettings(
  stated: unknown,
):
  | { readonly kind: 'settings'; readonly settings: SimulatorSettings }
  | { readonly kind: 'wrong'; readonly why: string } {
  const parsed = settingsShape.safeParse(stated);
  if (parsed.success) return { kind: 'settings', settings: parsed.data };
  const [issue] = parsed.error.issues;
  return { kind: 'wrong', why: issue === undefined ? 'not settings' : `${issue.path.join('.')}: ${issue.message}` };
}

/** The mode of the `attempt`-th try of a number that is the `arrival`-th POST of all; both count from one. */
export function chooseMode(settings: SimulatorSettings, number: string, attempt: number, arrival: number): Mode {
  const listed = settings.numbers[number];
  const own = listed?.[Math.min(attempt, listed.length) - 1];
  if (own !== undefined) return own;
  const due = settings.every.find(({ n }) => arrival % n === 0);
  if (due !== undefined) return due.mode;
  let share = shareOf(`${settings.seed}:${number}:${attempt}`);
  for (const part of settings.mix) {
    if (share < part.percent) return part.mode;
    share -= part.percent;
  }
  return 'ok';
}

/** A text's place in [0, 100): FNV-1a with a final mix, the same in every process. */
export function shareOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32) * 100;
}
