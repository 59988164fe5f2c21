import { expect, test } from 'vitest';
import { afterRetry, FATES_BY_HAND, mayResolve } from '../../src/kernel/by-hand.ts';
import { EFFECT_LIFE, type EffectState, mayBecome } from '../../src/kernel/transitions.ts';

const STATES = Object.keys(EFFECT_LIFE) as EffectState[];

test('a retry leads along the life of an effect, and never straight to a send of what may have acted', () => {
  const found = Object.fromEntries(STATES.map((state) => [state, afterRetry(state)]));
  expect(found).toEqual({
    pending: 'pending',
    sending: null,
    unknown: 'unknown',
    pending_external: 'pending_external',
    succeeded: null,
    failed: null,
    returned: null,
    needs_attention: 'unknown',
    dead: 'pending',
  });
  for (const state of STATES) {
    const to = afterRetry(state);
    if (to !== null && to !== state) expect(mayBecome(EFFECT_LIFE, state, to)).toBe(true);
  }
});

test('a person resolves only what has no fate, takes back only what was paid, and never what is in hand', () => {
  const allowed = STATES.flatMap((state) => {
    const fates = FATES_BY_HAND.filter((fate) => mayResolve(state, fate));
    return fates.length === 0 ? [] : [`${state}: ${fates.join(' ')}`];
  });
  expect(allowed).toEqual([
    'unknown: succeeded failed returned',
    'pending_external: succeeded failed returned',
    'succeeded: returned',
    'needs_attention: succeeded failed returned',
    'dead: failed',
  ]);
  for (const state of STATES) {
    for (const fate of FATES_BY_HAND.filter((name) => mayResolve(state, name))) {
      const from = fate === 'returned' && state !== 'succeeded' ? 'succeeded' : state;
      expect(mayBecome(EFFECT_LIFE, from, fate), `${from} to ${fate}`).toBe(true);
    }
  }
});
