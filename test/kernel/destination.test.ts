import { expect, test } from 'vitest';
import { parseDestination, webhookDestination } from '../../src/kernel/destination.ts';

test('a destination says of which kind it is, and a receiver’s name is read back letter for letter', () => {
  expect(parseDestination(webhookDestination('accounting'))).toEqual({ kind: 'webhook', receiver: 'accounting' });
  expect(parseDestination('m-1001')).toEqual({ kind: 'account', account: 'm-1001' });
  expect(parseDestination('a:webhook:b')).toEqual({ kind: 'account', account: 'a:webhook:b' });
});
