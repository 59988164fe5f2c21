import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Gateway } from '../../src/gateway/port.ts';
import type { Identity } from '../../src/kernel/rewind.ts';
import type { RelayEvent } from '../../src/relay/events.ts';
import { relayOnce, runRelay } from '../../src/relay/relay.ts';
import { filteredEntries } from '../../src/store/audit-read.ts';
import { readFreeze, readIdentity, thawDelivery } from '../../src/store/epoch.ts';
import { effectCounts } from '../../src/store/outbox-read.ts';
import { insertEffect, insertEffects, useTestLedger } from '../support/ledger-rows.ts';
import { useTestBank } from '../support/simulator.ts';
import { waitFor } from '../support/wait.ts';
import { FAST, gatewayTo, servicesOf } from './harness.ts';

const ledger = useTestLedger();
const bank = useTestBank();
let key: string;
let gateway: Gateway;
let here: Identity;

beforeEach(async () => {
  await thawDelivery(ledger.db);
  key = await ledger.freshKey();
  await insertEffects(ledger.db, key, 5);
  gateway = gatewayTo((await bank.start()).url);
  here = await readIdentity(ledger.db);
});
afterEach(() => gateway.close());

const later = (change: Partial<Identity>): Identity => ({ ...here, ...change });

test.each([
  ['another cluster', () => later({ systemIdentifier: '1' }), 'another database cluster'],
  ['another timeline', () => later({ timeline: here.timeline + 1 }), 'a failover or a restore'],
  ['an older epoch', () => later({ epoch: String(BigInt(here.epoch) + 1n) }), 'an older copy of the database'],
])(
  'a relay whose database is %s than what is remembered takes nothing, and freezes it for all',
  async (_what, remembered, why) => {
    const events: RelayEvent[] = [];
    const options = {
      ...FAST,
      remembered: remembered(),
      release: 'test',
      onEvent: (event: RelayEvent) => void events.push(event),
    };
    expect(await relayOnce(servicesOf(ledger, gateway), options)).toMatchObject({ taken: 0, sent: 0 });
    expect((await readFreeze(ledger.db))?.reason).toContain(why);
    expect(events).toContainEqual(expect.objectContaining({ kind: 'frozen' }));
    const { rows } = await ledger.db.query(
      `select distinct state, attempts, fence::int4 as fence from onceper.outbox where key = $1`,
      [key],
    );
    expect(rows).toEqual([{ state: 'pending', attempts: 0, fence: 0 }]);
    expect(await relayOnce(servicesOf(ledger, gateway), FAST)).toMatchObject({ taken: 0 });
    const any = { job: null, key: null, actor: null, verb: 'freeze', from: null, to: null } as const;
    expect((await filteredEntries(ledger.db, any, { before: null, limit: 1 }))[0]).toMatchObject({
      actor: 'worker:test',
    });
  },
);

test('a relay that runs freezes a database that falls behind what it has seen, and goes on when that is thawed', async () => {
  const end = new AbortController();
  const events: RelayEvent[] = [];
  const run = runRelay(servicesOf(ledger, gateway), {
    ...FAST,
    signal: end.signal,
    onEvent: (event) => void events.push(event),
  });
  await waitFor(async () => (await effectCounts(ledger.db, key)).succeeded === 5, { what: 'the payouts' });
  await ledger.db.query('update onceper.epoch set epoch = epoch + 2');
  await waitFor(() => Promise.resolve(events.filter(({ kind }) => kind === 'idle').length > 2), {
    what: 'another look',
  });
  const idle = events.length;
  await waitFor(() => Promise.resolve(events.length > idle + 1), { what: 'a look at the epoch' });
  await ledger.db.query('alter table onceper.epoch disable trigger epoch_guard');
  await ledger.db.query('update onceper.epoch set epoch = epoch - 1');
  await ledger.db.query('alter table onceper.epoch enable trigger epoch_guard');
  await waitFor(() => readFreeze(ledger.db), { what: 'the freeze' });
  await insertEffect(ledger.db, { key, subject: 'm-late' });
  await ledger.db.query('update onceper.action set delivering = true where key = $1', [key]);
  await thawDelivery(ledger.db);
  await waitFor(async () => (await effectCounts(ledger.db, key)).succeeded === 6, { what: 'the late payout' });
  expect(events.filter(({ kind }) => kind === 'frozen')).toHaveLength(1);
  end.abort();
  await run;
});
