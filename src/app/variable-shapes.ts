import { z } from 'zod';

/** `500ms`, `30s`, `5m`, `24h`, `7d`, in milliseconds. */
export const duration = z
  .string()
  .regex(/^\d+(ms|s|m|h|d)$/, 'a duration such as 500ms, 30s, 5m, 24h or 7d')
  .transform((text) => Number.parseInt(text, 10) * (UNIT_MS[text.replace(/^\d+/, '')] ?? 1));
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The same, above 0: a wait of nothing would ask without a pause, a time-out of nothing refuse every answer. */
export const wait = duration.refine((ms) => ms > 0, 'a duration above 0');

/** A whole number above 0. */
export const count = z
  .string()
  .regex(/^[1-9]\d*$/, 'a whole number above 0')
  .transform(Number);
