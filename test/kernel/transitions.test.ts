import { expect, test } from 'vitest';
import {
  ACTION_LIFE,
  APPROVAL_LIFE,
  BACKFILL_PERIOD_LIFE,
  EFFECT_LIFE,
  HOLD_LIFE,
  isFinal,
  mayBecome,
  PERIOD_LIFE,
  RUN_LIFE,
  type Transitions,
  UNFINISHED_EFFECTS,
} from '../../src/kernel/transitions.ts';

const LIVES: [string, Transitions<string>, string][] = [
  ['run', RUN_LIFE, 'deferred'],
  ['action', ACTION_LIFE, 'admitted'],
  ['effect', EFFECT_LIFE, 'pending'],
  ['period', PERIOD_LIFE, 'open'],
  ['hold', HOLD_LIFE, 'held'],
  ['request for an approval', APPROVAL_LIFE, 'requested'],
];

function reachable(life: Transitions<string>, from: string): Set<string> {
  const seen = new Set([from]);
  for (const state of seen) for (const next of life[state] ?? []) seen.add(next);
  return seen;
}

test.each(LIVES)(
  'every state of a %s is reached from its first one and leads only to known states',
  (_, life, first) => {
    const states = Object.keys(life);
    expect([...reachable(life, first)].sort()).toEqual(states.sort());
  },
);

test.each(LIVES)('from every state of a %s a final one can be reached', (_, life) => {
  for (const state of Object.keys(life)) {
    expect([...reachable(life, state)].some((end) => isFinal(life, end))).toBe(true);
  }
});

test('a done action never runs again', () => {
  expect(reachable(ACTION_LIFE, 'done')).toEqual(new Set(['done', 'compensating', 'compensated']));
});

test('a skipped period and action are final', () => {
  expect(isFinal(ACTION_LIFE, 'skipped')).toBe(true);
  expect(isFinal(PERIOD_LIFE, 'skipped')).toBe(true);
});

test('an approval is executed once, out of approved alone, and an edit makes it a request again', () => {
  const states = Object.keys(APPROVAL_LIFE) as (keyof typeof APPROVAL_LIFE)[];
  expect(states.filter((from) => mayBecome(APPROVAL_LIFE, from, 'executed'))).toEqual(['approved']);
  expect(isFinal(APPROVAL_LIFE, 'executed')).toBe(true);
  expect(mayBecome(APPROVAL_LIFE, 'approved', 'requested')).toBe(true);
  expect(states.filter((from) => mayBecome(APPROVAL_LIFE, from, 'approved'))).toEqual(['requested']);
});

test('a period of a backfill ends, is cancelled before it starts, or is left alone from the first', () => {
  expect(reachable(BACKFILL_PERIOD_LIFE, 'waiting')).toEqual(new Set(['waiting', 'started', 'cancelled', 'ended']));
  expect(mayBecome(BACKFILL_PERIOD_LIFE, 'started', 'cancelled')).toBe(false);
  for (const end of ['ended', 'cancelled', 'left'] as const) expect(isFinal(BACKFILL_PERIOD_LIFE, end)).toBe(true);
});

test('an effect is sent again only out of pending, or out of unknown after a look-up', () => {
  const senders = Object.keys(EFFECT_LIFE).filter((from) => mayBecome(EFFECT_LIFE, from as 'pending', 'sending'));
  expect(senders.sort()).toEqual(['needs_attention', 'pending', 'unknown']);
});

test('money that was refused or returned is never sent again', () => {
  for (const end of ['failed', 'returned']) expect(reachable(EFFECT_LIFE, end)).toEqual(new Set([end]));
});

test('money on hold is released once, and never put back', () => {
  expect(isFinal(HOLD_LIFE, 'released')).toBe(true);
  expect(Object.keys(HOLD_LIFE).filter((from) => mayBecome(HOLD_LIFE, from as 'held', 'released'))).toEqual(['held']);
});

test('the unfinished effects are those that the relay still takes', () => {
  for (const state of UNFINISHED_EFFECTS) expect(isFinal(EFFECT_LIFE, state)).toBe(false);
});
