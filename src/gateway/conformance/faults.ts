import assert from 'node:assert/strict';
import { bodyOf, type ConformanceCase, type Treatment } from './harness.ts';
import { assertAccepted, sent } from './sending.ts';

/** Stable words only: answers go into logs and the ledger, and free text can hold anything. */
const CODE = /^[\w.-]{1,64}$/;

/** Treatments that prove nothing either way, and how many transfers each has left behind. */
const UNKNOWN = [
  ['drop_before', 0, 'a connection that is reset before anything was done'],
  ['drop_after', 1, 'a connection that is reset after the transfer was made'],
  ['cut', 1, 'an answer that stops half-way'],
  ['error_before', 0, 'a 500 before anything was done'],
  ['error_after', 1, 'a 500 after the transfer was made'],
] as const satisfies readonly (readonly [Treatment, number, string])[];

const unknownCases = UNKNOWN.map(
  ([treatment, made, what]): ConformanceCase => ({
    name: `${what} is unknown, is never repeated by the adapter, and a look-up tells the truth`,
    needs: ['memory', treatment],
    async run(harness) {
      const transfer = harness.transfer();
      await harness.treat(transfer.reference, treatment);
      const answer = await sent(harness, transfer);
      assert.equal(answer.kind, 'unknown');
      assert.ok(answer.kind === 'unknown');
      assert.match(answer.code, CODE);
      assert.equal(await harness.requests(transfer.reference), 1);
      assert.equal(await harness.made(transfer.reference), made);
      const found = await harness.gateway.lookUp(transfer.reference);
      assert.equal(found.kind, made === 0 ? 'not_found' : 'found');
      await sent(harness, transfer);
      assert.ok((await harness.made(transfer.reference)) <= 1, 'a re-send makes no second transfer');
    },
  }),
);

/** Cases of a counterparty, a network or a caller that does not do as one hopes. */
export const FAULTS: readonly ConformanceCase[] = [
  ...unknownCases,
  {
    name: 'a number that is in flight is in_flight, and moves nothing by itself',
    needs: ['memory', 'in_flight'],
    async run(harness) {
      const transfer = harness.transfer();
      await harness.treat(transfer.reference, 'in_flight');
      assert.equal((await sent(harness, transfer)).kind, 'in_flight');
      assert.equal(await harness.requests(transfer.reference), 1);
      assertAccepted(await sent(harness, transfer), transfer);
    },
  },
  {
    name: 'a request for patience is busy with the time that was asked for, and moves nothing',
    needs: ['memory', 'busy'],
    async run(harness) {
      const transfer = harness.transfer();
      await harness.treat(transfer.reference, 'busy');
      const answer = await sent(harness, transfer);
      assert.ok(answer.kind === 'busy', `expected busy, got ${answer.kind}`);
      assert.ok(answer.retryAfterMs >= 0 && answer.retryAfterMs <= 3_600_000);
      assert.equal(await harness.requests(transfer.reference), 1);
      assert.equal(await harness.made(transfer.reference), 0);
      assertAccepted(await sent(harness, transfer), transfer);
    },
  },
  {
    name: 'a refusal that is final for the payee is refused, with a 4xx and a stable code',
    needs: ['memory', 'refused'],
    async run(harness) {
      const transfer = harness.transfer();
      await harness.treat(transfer.reference, 'refused');
      const answer = await sent(harness, transfer);
      assert.ok(answer.kind === 'refused', `expected refused, got ${answer.kind}`);
      assert.ok(answer.status >= 400 && answer.status < 500);
      assert.match(answer.code, CODE);
      assert.equal(await harness.made(transfer.reference), 0);
    },
  },
  {
    name: 'an answer about us is barred, moves nothing, and the same number is paid once when its cause is mended',
    needs: ['memory', 'barred'],
    async run(harness) {
      const transfer = harness.transfer();
      const { reference } = transfer;
      await harness.treat(reference, 'barred');
      const answer = await sent(harness, transfer);
      assert.ok(answer.kind === 'barred', `expected barred, got ${answer.kind}`);
      assert.ok(answer.status >= 400 && answer.status < 500);
      assert.match(answer.code, CODE);
      assert.equal(await harness.made(reference), 0);
      const again = () => harness.gateway.send(reference, bodyOf(transfer), undefined, repeats);
      let repeats = 0;
      let last = await again();
      // A counterparty that remembers its refusals gives the old one first, and says that it is old.
      if (last.kind === 'repeated') {
        repeats += 1;
        last = await again();
      }
      const id = assertAccepted(last, transfer);
      assert.equal(assertAccepted(await again(), transfer), id, 'the same again is the same transfer');
      assert.equal(await harness.made(reference), 1);
      assert.equal((await harness.gateway.lookUp(reference)).kind, 'found');
    },
  },
  {
    name: 'a counterparty that is not there gets nothing: unsent, and a look-up that proves nothing',
    needs: [],
    async run({ unreachable, transfer }) {
      const asked = transfer();
      assert.equal((await unreachable.send(asked.reference, bodyOf(asked))).kind, 'unsent');
      assert.equal((await unreachable.lookUp(asked.reference)).kind, 'unknown');
    },
  },
  {
    name: 'a caller that has given up before is unsent, and nothing throws',
    needs: [],
    async run({ gateway, transfer }) {
      const asked = transfer();
      const gone = AbortSignal.abort();
      assert.equal((await gateway.send(asked.reference, bodyOf(asked), gone)).kind, 'unsent');
      assert.equal((await gateway.lookUp(asked.reference, gone)).kind, 'unknown');
    },
  },
  {
    name: 'a body that is no transfer, if it is answered at all, is never accepted',
    needs: [],
    async run({ gateway, transfer }) {
      assert.notEqual((await gateway.send(transfer().reference, '{"amount":1}')).kind, 'accepted');
    },
  },
  {
    name: 'no answer repeats the credentials',
    needs: [],
    async run({ gateway, unreachable, transfer, secret }) {
      if (secret === null) return;
      const asked = transfer();
      const answers = [
        await gateway.send(asked.reference, bodyOf(asked)),
        await gateway.lookUp(asked.reference),
        await unreachable.send(asked.reference, bodyOf(asked)),
        await unreachable.list({ from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z', limit: 1 }).catch(String),
      ];
      assert.ok(!JSON.stringify(answers).includes(secret));
    },
  },
];
