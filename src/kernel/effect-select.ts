import type { Select } from './sql.ts';

/**
 * Effects as a select over a job's own tables. Its columns are number, subject, effect, destination and body. With `isOrdered`
 * there is a text[] beside them, waits_for: numbers of earlier effects of the same subject and destination, the nearest
 * first. The effect is not sent before the nearest that the outbox holds has its fate; an effect of the same select is held
 * by nobody yet.
 */
export interface EffectSelect extends Select {
  readonly isOrdered?: boolean;
}
