import { beforeEach, expect, test } from 'vitest';
import { checkNotices } from '../../src/ops/doctor-notices.ts';
import { forced } from '../support/forced.ts';
import { insertEffect, insertNotice, useTestLedger } from '../support/ledger-rows.ts';

const ledger = useTestLedger();
let key: string;

beforeEach(async () => {
  key = await ledger.freshKey();
});

/** Makes a notice one that was tried so many minutes ago, with this code. */
async function tried(number: string, minutes: number, code: string): Promise<void> {
  await forced(
    ledger.db,
    `update onceper.outbox set attempts = 3, state = 'unknown', code = $3,
            first_sent_at = clock_timestamp() - $2 * interval '1 minute' where number = $1`,
    [number, minutes, code],
  );
}

test('nobody is late while receivers are told, or have been away for a moment, and payouts are not counted', async () => {
  await tried(await insertEffect(ledger.db, { key, subject: 'm-1' }), 60, 'timeout');
  expect(await checkNotices(ledger.db)).toEqual([
    expect.objectContaining({ state: 'ok', detail: 'everybody has been told' }),
  ]);
  await tried(await insertNotice(ledger.db, { key, receiver: 'accounting' }), 4, 'timeout');
  await insertNotice(ledger.db, { key, receiver: 'archive' });
  expect(await checkNotices(ledger.db)).toMatchObject([{ state: 'ok', detail: '2 on their way' }]);
});

test('a receiver that has not answered for over five minutes is a warning with its last code, and no failure', async () => {
  await tried(await insertNotice(ledger.db, { key, receiver: 'accounting' }), 65, 'http_500');
  await tried(await insertNotice(ledger.db, { key, receiver: 'archive' }), 6, 'receiver_unknown');
  await tried(await insertNotice(ledger.db, { key, receiver: 'inside' }), 6, 'address_refused');
  expect(await checkNotices(ledger.db)).toMatchObject([
    { state: 'warn', detail: 'accounting has not acknowledged 1, tried for 1 h 5 min: http_500' },
    { state: 'warn', remedy: 'name archive in the relay’s ONCEPER_RECEIVERS' },
    { state: 'warn', remedy: expect.stringContaining('ONCEPER_RECEIVER_NETWORKS') as string },
  ]);
});
