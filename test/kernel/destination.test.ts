import { describe, expect, test } from 'vitest';
import { parseDestination, saidOfDestination, webhookDestination } from '../../src/kernel/destination.ts';
import { accepted, busy, down, lost, noLookUp, refused, short, shown, stale } from './delivery-answers.ts';

test('a destination says of which kind it is, and a receiver’s name is read back letter for letter', () => {
  expect(parseDestination(webhookDestination('accounting'))).toEqual({ kind: 'webhook', receiver: 'accounting' });
  expect(parseDestination('m-1001')).toEqual({ kind: 'account', account: 'm-1001' });
  expect(parseDestination('a:webhook:b')).toEqual({ kind: 'account', account: 'a:webhook:b' });
});

describe('what an answer says of the whole counterparty', () => {
  const other = { isProbe: false, wouldSend: true };
  const probe = { isProbe: true, wouldSend: true };
  const looking = { isProbe: true, wouldSend: false };

  test('one about us pauses it, whoever was answered', () => {
    const pauses = { kind: 'pauses', code: 'no_balance', status: 402 };
    expect(saidOfDestination(other, short)).toEqual(pauses);
    expect(saidOfDestination(probe, short)).toEqual(pauses);
  });

  test('a transfer that is accepted opens it, where it is the probe', () => {
    expect(saidOfDestination(probe, accepted())).toEqual({ kind: 'opens' });
    expect(saidOfDestination(other, accepted())).toBeNull();
  });

  test('one about the payee shows nothing of us: another probe comes at once', () => {
    expect(saidOfDestination(probe, refused(400, 'account_closed'))).toEqual({ kind: 'try_again' });
    expect(saidOfDestination(other, refused(400, 'account_closed'))).toBeNull();
  });

  test('no answer, one that is old, and a look-up before a send open nothing', () => {
    for (const answer of [lost, down, busy, noLookUp]) expect(saidOfDestination(probe, answer)).toBeNull();
    expect(saidOfDestination(probe, stale)).toEqual({ kind: 'try_again' });
    expect(saidOfDestination(probe, shown({}))).toEqual({ kind: 'try_again' });
    expect(saidOfDestination(looking, shown({}))).toEqual({ kind: 'opens' });
  });
});
