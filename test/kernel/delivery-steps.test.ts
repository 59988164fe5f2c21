import { describe, expect, test } from 'vitest';
import {
  backOffMs,
  checkTerms,
  DELIVERY_DEFAULTS,
  type DeliveryTerms,
  type EffectInHand,
  firstStep,
  isAbsenceFresh,
  maySendBlind,
} from '../../src/kernel/delivery.ts';

const terms: DeliveryTerms = {
  keyWindowMs: 86_400_000,
  visibilityDelayMs: 30_000,
  timeoutMs: 10_000,
  maxNumberLength: 64,
  budget: { tries: 3, timeMs: 3_600_000, lookUps: 5 },
  backOff: { baseMs: 1_000, capMs: 60_000 },
};
const number = 'settlement:2026-09:m-1:GBP:payout';
const expected = { amount: '1250', currency: 'GBP', destination: 'm-1', reference: number };
const fresh: EffectInHand = {
  before: 'pending',
  attempts: 1,
  lookUps: 0,
  periodEndedAgeMs: 60_000,
  firstSentAgeMs: null,
  lastSentAgeMs: null,
};
const unknown: EffectInHand = {
  before: 'unknown',
  attempts: 1,
  lookUps: 1,
  periodEndedAgeMs: 60_000,
  firstSentAgeMs: 60_000,
  lastSentAgeMs: 60_000,
};
const orphan: EffectInHand = { ...unknown, before: 'sending' };
const external: EffectInHand = { ...unknown, before: 'pending_external' };

describe('the first step', () => {
  test('sends what is pending and looks up everything else', () => {
    expect(firstStep(fresh, number, expected, terms)).toEqual({ kind: 'send', expected });
    for (const effect of [unknown, orphan, external]) {
      expect(firstStep(effect, number, expected, terms)).toEqual({ kind: 'look_up' });
    }
  });

  test('is the last one of a row that can not be sent at all', () => {
    expect(firstStep(fresh, number, null, terms)).toMatchObject({ state: 'dead', code: 'malformed_body' });
    expect(firstStep(fresh, 'n'.repeat(65), expected, terms)).toMatchObject({ state: 'dead', code: 'number_too_long' });
  });

  test('ends look-ups that die with their process; one that waits at the counterparty is looked up for good', () => {
    const often = { lookUps: 6 };
    expect(firstStep({ ...unknown, ...often }, number, expected, terms)).toMatchObject({ state: 'needs_attention' });
    expect(firstStep({ ...external, ...often }, number, expected, terms)).toEqual({ kind: 'look_up' });
  });
});

describe('without a look-up a number is sent', () => {
  const aged = (periodEndedAgeMs: number | null, inHandMs = 0) => maySendBlind({ periodEndedAgeMs }, inHandMs, terms);

  test('only while the key window lasts, counted from the end of its period to its last byte', () => {
    expect(aged(0)).toBe(true);
    expect(aged(86_389_999)).toBe(true);
    expect(aged(86_390_000)).toBe(false);
    expect(aged(86_380_000, 10_000)).toBe(false);
  });

  test('never where the end is not known, or is still to come', () => {
    expect(aged(null)).toBe(false);
    expect(aged(-1)).toBe(false);
  });
});

test('an absence is proof while what was too young to be seen is young enough to be recognised', () => {
  expect(isAbsenceFresh(0, terms)).toBe(true);
  expect(isAbsenceFresh(86_360_000, terms)).toBe(false);
});

test('the back-off doubles up to its cap, and jitter takes away up to a half', () => {
  const full = [1, 2, 3, 7, 60].map((steps) => backOffMs(steps, terms.backOff, 0));
  expect(full).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
  expect(backOffMs(3, terms.backOff, 0.5)).toBe(3_000);
  expect(backOffMs(0, DELIVERY_DEFAULTS.backOff, 0)).toBe(1_000);
});

test('promises that leave no moment for a safe re-send are refused', () => {
  expect(() => checkTerms(terms)).not.toThrow();
  const narrow = { ...terms, keyWindowMs: 40_000 };
  expect(() => checkTerms(narrow)).toThrow(expect.objectContaining({ code: 'gateway_terms' }));
  expect(() => checkTerms({ ...terms, timeoutMs: 0 })).toThrow(expect.objectContaining({ code: 'gateway_terms' }));
});
