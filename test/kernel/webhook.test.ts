import { describe, expect, test } from 'vitest';
import { EFFECT_LIFE, type EffectState, mayBecome } from '../../src/kernel/transitions.ts';
import { afterWebhook, type EffectToldOf } from '../../src/kernel/webhook.ts';

const expected = {
  amount: '1250',
  currency: 'GBP',
  destination: 'm-1',
  reference: 'settlement:2026-09:m-1:GBP:payout',
};
const transfer = { id: 'tr_1', status: 'whatever the snapshot says', ...expected };
const STATES = Object.keys(EFFECT_LIFE) as EffectState[];
const STATUSES = ['pending', 'succeeded', 'failed', 'returned', 'frozen'] as const;

const at = (state: EffectState, changes: Partial<EffectToldOf> = {}): EffectToldOf => {
  return { state, code: null, counterpartyId: ['succeeded', 'returned'].includes(state) ? 'tr_1' : null, ...changes };
};

function said(
  effect: EffectToldOf,
  status: string,
  found = transfer,
  frozen: typeof expected | null = expected,
): string {
  const told = afterWebhook(effect, frozen, `transfer.${status}`, found);
  if (told.kind !== 'becomes') return told.kind === 'stale' ? '-' : `! ${told.code}`;
  return told.verdict.code === null ? told.verdict.state : `${told.verdict.state} ${told.verdict.code}`;
}

/** For each state what pending, succeeded, failed, returned and an unknown status mean: `-` nothing, `!` a person looks. */
const TABLE: Record<EffectState, readonly string[]> = {
  pending: STATUSES.map(() => 'unknown told_by_webhook'),
  sending: ['-', 'succeeded', 'failed failed_at_counterparty', 'returned', 'needs_attention unknown_status'],
  unknown: [
    'pending_external',
    'succeeded',
    'failed failed_at_counterparty',
    'returned',
    'needs_attention unknown_status',
  ],
  pending_external: ['-', 'succeeded', 'failed failed_at_counterparty', 'returned', 'needs_attention unknown_status'],
  succeeded: ['-', '-', '! contradicts_succeeded', 'returned', '! contradicts_succeeded'],
  failed: ['-', '! contradicts_failed', '-', '! contradicts_failed', '! contradicts_failed'],
  returned: ['-', '-', '! contradicts_returned', '-', '! contradicts_returned'],
  needs_attention: ['-', 'succeeded', 'failed failed_at_counterparty', 'returned', '! unknown_status'],
  dead: STATUSES.map(() => '! contradicts_dead'),
};

test.each(STATES)('each status means one thing for an effect that is %s', (state) => {
  expect(STATUSES.map((status) => said(at(state), status))).toEqual(TABLE[state]);
});

test('a webhook moves an effect only along its life', () => {
  for (const state of STATES) {
    for (const status of STATUSES) {
      const told = afterWebhook(at(state), expected, `transfer.${status}`, transfer);
      if (told.kind !== 'becomes') continue;
      const { state: to } = told.verdict;
      // Returned without having been heard of as succeeded passes through it, with both postings.
      const from = to === 'returned' && state !== 'succeeded' ? 'succeeded' : state;
      if (from !== state) expect(mayBecome(EFFECT_LIFE, state, 'succeeded')).toBe(true);
      expect(mayBecome(EFFECT_LIFE, from, to), `${state} to ${to}`).toBe(true);
    }
  }
});

/** What becomes of an effect in each state when a webhook speaks of other money, another place or another transfer. */
function doubted(state: EffectState, code: string): string {
  if (state === 'pending') return 'unknown told_by_webhook';
  return ['sending', 'unknown', 'pending_external'].includes(state) ? `needs_attention ${code}` : `! ${code}`;
}

describe.each(STATES)('for an effect that is %s', (state) => {
  test.each([
    ['amount', { amount: '1251' }],
    ['currency', { currency: 'EUR' }],
    ['destination', { destination: 'm-2' }],
  ] as const)('another %s is put before a person, whatever its status, never booked', (_, other) => {
    for (const status of STATUSES) {
      expect(said(at(state), status, { ...transfer, ...other }), status).toBe(doubted(state, 'found_different'));
    }
  });

  test('a return of a part is put before a person as such, never booked as all of it', () => {
    const penny = { ...transfer, amount: '1' };
    expect(said(at(state), 'returned', penny)).toBe(doubted(state, 'returned_in_part'));
    expect(said(at(state), 'returned_in_part', penny)).toBe(doubted(state, 'returned_in_part'));
    expect(said(at(state), 'returned_in_part')).toBe(doubted(state, 'returned_in_part'));
    expect(said(at(state), 'returned', { ...penny, destination: 'm-2' })).toBe(doubted(state, 'found_different'));
  });
});

test('what differs is said in words, with both sides', () => {
  const other = { ...transfer, amount: '1', destination: 'm-2' };
  expect(afterWebhook(at('succeeded'), expected, 'transfer.returned', other)).toEqual({
    kind: 'attention',
    code: 'found_different',
    detail: 'amount 1 where 1250 was to be sent, destination m-2 where m-1 was to be sent',
  });
  expect(afterWebhook(at('pending'), expected, 'transfer.returned', other)).toMatchObject({
    detail: expect.stringContaining('amount 1 ') as string,
  });
});

test('a second transfer for the number is put before a person, whatever is recorded', () => {
  const second = { ...transfer, id: 'tr_2' };
  expect(said(at('pending_external', { counterpartyId: 'tr_1' }), 'succeeded', second)).toBe(
    'needs_attention found_twice',
  );
  expect(said(at('succeeded'), 'succeeded', second)).toBe('! found_twice');
  expect(said(at('succeeded'), 'returned', second)).toBe('! found_twice');
  expect(said(at('returned'), 'returned', second)).toBe('! found_twice');
  expect(said(at('failed', { counterpartyId: 'tr_1' }), 'failed', second)).toBe('! found_twice');
});

test('where a person compares two transfers, a webhook decides nothing', () => {
  for (const code of ['found_twice', 'found_different', 'returned_in_part']) {
    expect(said(at('needs_attention', { code }), 'succeeded')).toBe('! waits_for_a_person');
  }
});

test('an id that is recorded stays when another transfer is told of', () => {
  const effect = at('pending_external', { counterpartyId: 'tr_1' });
  expect(afterWebhook(effect, expected, 'transfer.succeeded', { ...transfer, id: 'tr_2' })).toMatchObject({
    verdict: { state: 'needs_attention', counterpartyId: 'tr_1' },
  });
});

test('an effect whose frozen body is no transfer is never booked by a webhook', () => {
  expect(said(at('unknown'), 'succeeded', transfer, null)).toBe('needs_attention found_different');
});
