import { describe, expect, test } from 'vitest';
import { afterLookUp, afterSend, type EffectInHand } from '../../src/kernel/delivery.ts';
import type { LookUpAnswer, SendAnswer } from '../../src/kernel/transfer.ts';
import { EFFECT_LIFE, type EffectState, mayBecome } from '../../src/kernel/transitions.ts';
import {
  accepted,
  busy,
  down,
  expected,
  external,
  fresh,
  lost,
  noLookUp,
  notFound,
  old,
  orphan,
  refused,
  short,
  shown,
  spent,
  stale,
  terms,
  unknown,
  young,
} from './delivery-answers.ts';

type SendCase = [
  sentence: string,
  effect: EffectInHand,
  answer: SendAnswer,
  state: EffectState,
  code: string | null,
  delayMs: number,
];

const afterSends: SendCase[] = [
  ['a confirmed transfer is a success', fresh, accepted(), 'succeeded', null, 0],
  ['a confirmed transfer after an unknown is a success', unknown, accepted(), 'succeeded', null, 0],
  [
    'a pending transfer waits at the counterparty',
    fresh,
    accepted({ status: 'pending' }),
    'pending_external',
    null,
    1_000,
  ],
  [
    'a transfer of another amount is for a person',
    fresh,
    accepted({ amount: '1251' }),
    'needs_attention',
    'found_different',
    0,
  ],
  [
    'a return of a part is for a person',
    fresh,
    accepted({ status: 'returned', amount: '1' }),
    'needs_attention',
    'returned_in_part',
    0,
  ],
  [
    'a return of a part that is said as such is for a person',
    fresh,
    accepted({ status: 'returned_in_part' }),
    'needs_attention',
    'returned_in_part',
    0,
  ],
  [
    'another transfer than the one that is recorded is for a person',
    { ...fresh, counterpartyId: 'tr_0' },
    accepted(),
    'needs_attention',
    'found_twice',
    0,
  ],
  [
    'a transfer under another reference is for a person',
    fresh,
    accepted({ reference: 'x' }),
    'needs_attention',
    'found_different',
    0,
  ],
  [
    'a status of the future is for a person',
    fresh,
    accepted({ status: 'parked' }),
    'needs_attention',
    'unknown_status',
    0,
  ],
  ['a refusal on a first send is a failure', fresh, refused(400, 'account_closed'), 'failed', 'account_closed', 0],
  [
    'a refusal after an unknown proves nothing',
    unknown,
    refused(400, 'account_closed'),
    'unknown',
    'account_closed',
    2_000,
  ],
  [
    'a refusal after a relay died proves nothing',
    orphan,
    refused(404, 'no_such_account'),
    'unknown',
    'no_such_account',
    2_000,
  ],
  ['an answer about us says nothing about a payout, which waits', fresh, short, 'pending', 'no_balance', 1_000],
  ['an answer about us does not undo an unknown', unknown, short, 'unknown', 'no_balance', 2_000],
  ['an answer about us after a relay died is looked up', orphan, short, 'unknown', 'no_balance', 2_000],
  [
    'tries and time that an open destination barred are for a person',
    { ...fresh, ...spent },
    short,
    'needs_attention',
    'no_balance',
    0,
  ],
  ['a probe spends nothing', { ...fresh, ...spent, isProbe: true }, short, 'pending', 'no_balance', 4_000],
  ['an old answer about us says nothing about a payout', fresh, stale, 'pending', 'no_balance', 1_000],
  ['a reused number stops', fresh, { kind: 'key_reused', status: 422 }, 'needs_attention', 'key_reused', 0],
  ['a number in flight is looked up', fresh, { kind: 'in_flight', status: 409 }, 'unknown', 'in_flight', 1_000],
  ['a time-out is unknown', fresh, lost, 'unknown', 'timeout', 1_000],
  ['a time-out after an unknown stays unknown', unknown, lost, 'unknown', 'timeout', 2_000],
  ['a busy counterparty has done nothing', fresh, busy, 'pending', 'busy', 7_000],
  ['a busy counterparty does not undo an unknown', unknown, busy, 'unknown', 'busy', 7_000],
  ['a counterparty that is down was sent nothing', fresh, down, 'pending', 'econnrefused', 1_000],
  ['a counterparty that is down does not undo an unknown', unknown, down, 'unknown', 'econnrefused', 2_000],
  [
    'tries alone do not spend the budget',
    { ...fresh, attempts: 9, firstSentAgeMs: 60_000 },
    busy,
    'pending',
    'busy',
    60_000,
  ],
  ['tries and time spent without a send end dead', { ...fresh, ...spent }, busy, 'dead', 'busy', 0],
  ['tries and time spent after an unknown are never dead', { ...unknown, ...spent }, busy, 'unknown', 'busy', 8_000],
];

/** The state in which a relay holds what it took. */
const HELD = {
  pending: 'sending',
  sending: 'unknown',
  unknown: 'unknown',
  pending_external: 'pending_external',
} as const;

type LookUpCase = [
  sentence: string,
  effect: EffectInHand,
  answer: LookUpAnswer,
  state: EffectState | 'resend',
  code: string | null,
  delayMs: number,
];

const afterLookUps: LookUpCase[] = [
  ['a found transfer is proof', unknown, shown({}), 'succeeded', null, 0],
  ['a found transfer is proof however old the send is', { ...unknown, ...old }, shown({}), 'succeeded', null, 0],
  [
    'a found pending transfer waits at the counterparty',
    unknown,
    shown({ status: 'pending' }),
    'pending_external',
    null,
    2_000,
  ],
  ['a found failed transfer is a failure', unknown, shown({ status: 'failed' }), 'failed', 'failed_at_counterparty', 0],
  ['a found returned transfer is returned', unknown, shown({ status: 'returned' }), 'returned', null, 0],
  [
    'a found transfer of another currency is for a person',
    unknown,
    shown({ currency: 'EUR' }),
    'needs_attention',
    'found_different',
    0,
  ],
  [
    'a found transfer to another place is for a person',
    unknown,
    shown({ destination: 'm-2' }),
    'needs_attention',
    'found_different',
    0,
  ],
  [
    'two transfers under one number are for a person',
    unknown,
    shown({}, { id: 'tr_2' }),
    'needs_attention',
    'found_twice',
    0,
  ],
  [
    'not found is no proof before the visibility delay',
    { ...unknown, ...young },
    notFound,
    'unknown',
    'not_visible_yet',
    25_000,
  ],
  ['not found allows a re-send after the visibility delay', unknown, notFound, 'resend', null, 0],
  ['not found after a relay died allows a re-send', orphan, notFound, 'resend', null, 0],
  [
    'not found after the key window is for a person',
    { ...unknown, ...old },
    notFound,
    'needs_attention',
    'key_window_passed',
    0,
  ],
  [
    'not found with the budget spent is for a person',
    { ...unknown, ...spent },
    notFound,
    'needs_attention',
    'exhausted',
    0,
  ],
  ['not found with tries spent and time left is sent again', { ...unknown, attempts: 3 }, notFound, 'resend', null, 0],
  [
    'tries that died with their relay count without the time',
    { ...orphan, attempts: 3 },
    notFound,
    'needs_attention',
    'exhausted',
    0,
  ],
  ['a fresh one that is found was paid by a ledger that is gone', fresh, shown({}), 'succeeded', null, 0],
  ['a fresh one that is not found may be sent', fresh, notFound, 'resend', null, 0],
  ['a fresh one whose look-up fails waits as it was', fresh, noLookUp, 'pending', 'http_500', 1_000],
  ['a fresh one is not looked up for ever', { ...fresh, ...spent }, noLookUp, 'dead', 'http_500', 0],
  ['a look-up that fails is repeated', unknown, noLookUp, 'unknown', 'http_500', 2_000],
  [
    'look-ups that fail for good are for a person',
    { ...unknown, lookUps: 5 },
    noLookUp,
    'needs_attention',
    'exhausted',
    0,
  ],
  ['a pending transfer that succeeds is a success', external, shown({}), 'succeeded', null, 0],
  [
    'a pending transfer that fails is a failure',
    external,
    shown({ status: 'failed' }),
    'failed',
    'failed_at_counterparty',
    0,
  ],
  ['a pending transfer stays pending', external, shown({ status: 'pending' }), 'pending_external', null, 2_000],
  [
    'a pending transfer outlives failing look-ups',
    { ...external, lookUps: 99 },
    noLookUp,
    'pending_external',
    'http_500',
    60_000,
  ],
  ['a pending transfer may lag', { ...external, ...young }, notFound, 'pending_external', 'not_visible_yet', 25_000],
  ['a pending transfer that vanished is never sent again', external, notFound, 'needs_attention', 'vanished', 0],
];

describe('after a send', () => {
  test.each(afterSends)('%s', (_sentence, effect, answer, state, code, delayMs) => {
    expect(afterSend(effect, expected, answer, terms, 0)).toMatchObject({ kind: 'becomes', state, code, delayMs });
    expect(mayBecome(EFFECT_LIFE, 'sending', state)).toBe(true);
  });
});

describe('after a look-up', () => {
  test.each(afterLookUps)('%s', (_sentence, effect, answer, state, code, delayMs) => {
    const verdict = afterLookUp(effect, expected, answer, terms, 0);
    if (state === 'resend') return expect(verdict).toEqual({ kind: 'resend', expected });
    expect(verdict).toMatchObject({ kind: 'becomes', state, code, delayMs });
    const held = HELD[effect.before];
    expect(mayBecome(EFFECT_LIFE, held, state === 'returned' ? 'succeeded' : state)).toBe(true);
  });

  test('a body that is no transfer is never sent again, nor compared', () => {
    for (const answer of [notFound, shown({})]) {
      expect(afterLookUp(unknown, null, answer, terms, 0)).toMatchObject({
        state: 'needs_attention',
        code: 'malformed_body',
      });
    }
  });
});
