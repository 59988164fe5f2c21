import { describe, expect, test } from 'vitest';
import type { EffectInHand } from '../../src/kernel/delivery.ts';
import { afterNotice, firstNoticeStep, NOTICE_DEFAULTS, type NoticeAnswer } from '../../src/kernel/notice.ts';
import { EFFECT_LIFE, mayBecome } from '../../src/kernel/transitions.ts';

const number = 'settlement:2026-09:accounting:XXX:completed';
const terms = { budget: { tries: 3, timeMs: 10_000 }, backOff: { baseMs: 100, capMs: 1_000 } };
const inHand = (changes: Partial<EffectInHand> = {}): EffectInHand & { readonly number: string } => {
  const age = { periodEndedAgeMs: null, firstSentAgeMs: null, lastSentAgeMs: null };
  return { number, before: 'pending', attempts: 1, lookUps: 0, ...age, ...changes };
};
const spent = inHand({ before: 'unknown', attempts: 3, firstSentAgeMs: 10_000 });
const unknown = (code: string, status: number | null = null, retryAfterMs = 0): NoticeAnswer => {
  return { kind: 'unknown', code, status, retryAfterMs };
};

describe('the first step with a notice', () => {
  test('is to send a pending one, and to repeat what may have been heard, without a look-up', () => {
    expect(firstNoticeStep(inHand(), terms)).toEqual({ kind: 'send' });
    expect(firstNoticeStep(inHand({ before: 'unknown' }), terms)).toEqual({ kind: 'repeat' });
    expect(firstNoticeStep(inHand({ before: 'sending' }), terms)).toEqual({ kind: 'repeat' });
  });

  test('is none for one that has killed its relay as often as it may be tried: it is dead', () => {
    const killer = inHand({ before: 'sending', attempts: 3 });
    expect(firstNoticeStep(killer, terms)).toMatchObject({ state: 'dead', code: 'exhausted' });
  });

  test('is a person’s for one that claims to wait for a transfer', () => {
    expect(firstNoticeStep(inHand({ before: 'pending_external' }), terms)).toMatchObject({ state: 'needs_attention' });
  });
});

describe('after a send', () => {
  test('any 2xx is its fate, under its own number', () => {
    expect(afterNotice(inHand(), { kind: 'acknowledged', status: 202 }, terms, 0)).toEqual({
      kind: 'becomes',
      state: 'succeeded',
      delayMs: 0,
      code: null,
      counterpartyId: number,
    });
  });

  test('410 is its fate: the receiver wants no more', () => {
    expect(afterNotice(inHand(), { kind: 'gone', status: 410 }, terms, 0)).toMatchObject({
      state: 'failed',
      code: 'gone',
    });
  });

  test('429 leaves a fresh one pending for as long as it was asked, and never makes an unknown one pending', () => {
    const busy: NoticeAnswer = { kind: 'busy', retryAfterMs: 5_000, status: 429 };
    expect(afterNotice(inHand(), busy, terms, 0)).toMatchObject({ state: 'pending', delayMs: 5_000, code: 'busy' });
    expect(afterNotice(inHand({ before: 'unknown' }), busy, terms, 0)).toMatchObject({
      state: 'unknown',
      delayMs: 5_000,
    });
  });

  test('a closed port leaves it pending, and no answer makes it unknown; both wait ever longer', () => {
    const unsent: NoticeAnswer = { kind: 'unsent', code: 'econnrefused' };
    expect(afterNotice(inHand(), unsent, terms, 0)).toMatchObject({
      state: 'pending',
      delayMs: 100,
      code: 'econnrefused',
    });
    expect(afterNotice(inHand({ attempts: 2 }), unknown('timeout'), terms, 0)).toMatchObject({
      state: 'unknown',
      delayMs: 200,
    });
    expect(afterNotice(inHand({ attempts: 20 }), unknown('timeout'), terms, 0)).toMatchObject({ delayMs: 1_000 });
    expect(afterNotice(inHand(), unknown('http_503', 503, 7_000), terms, 0)).toMatchObject({
      delayMs: 7_000,
    });
  });

  test.each([401, 404, 422, 500, 503])(
    '%s proves nothing: a receiver that is being mended answers anything',
    (status) => {
      expect(afterNotice(inHand(), unknown(`http_${status}`, status), terms, 0)).toMatchObject({ state: 'unknown' });
    },
  );

  test('it is dead only when tries and time are both spent', () => {
    expect(afterNotice(spent, unknown('http_500', 500), terms, 0)).toMatchObject({ state: 'dead', code: 'http_500' });
    expect(afterNotice({ ...spent, attempts: 2 }, unknown('http_500', 500), terms, 0)).toMatchObject({
      state: 'unknown',
    });
    expect(afterNotice({ ...spent, firstSentAgeMs: 9_999 }, unknown('http_500', 500), terms, 0)).toMatchObject({
      state: 'unknown',
    });
  });

  test('every verdict is a step of an effect’s life', () => {
    const answers: readonly NoticeAnswer[] = [
      { kind: 'acknowledged', status: 200 },
      { kind: 'gone', status: 410 },
      { kind: 'busy', retryAfterMs: 1, status: 429 },
      { kind: 'unsent', code: 'econnrefused' },
      unknown('timeout'),
    ];
    for (const answer of answers) {
      for (const effect of [inHand(), inHand({ before: 'unknown' }), spent]) {
        expect(mayBecome(EFFECT_LIFE, 'sending', afterNotice(effect, answer, terms, 0).state)).toBe(true);
      }
    }
  });
});

test('by default a receiver may be away for a weekend', () => {
  expect(NOTICE_DEFAULTS.budget.timeMs).toBeGreaterThanOrEqual(72 * 3_600_000);
});
