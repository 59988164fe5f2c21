import assert from 'node:assert/strict';
import { checkTerms, DELIVERY_DEFAULTS } from '../../kernel/delivery.ts';
import type { SendAnswer, Transfer } from '../port.ts';
import { bodyOf, type ConformanceCase, type ConformanceHarness } from './harness.ts';

export async function sent({ gateway }: ConformanceHarness, transfer: Transfer): Promise<SendAnswer> {
  return gateway.send(transfer.reference, bodyOf(transfer));
}

/** The answer's transfer, which must be the one that was asked for. */
export function assertAccepted(answer: SendAnswer, expected: Transfer): string {
  assert.equal(answer.kind, 'accepted', `expected accepted, got ${JSON.stringify(answer)}`);
  assert.ok(answer.kind === 'accepted');
  const { amount, currency, destination, reference, id } = answer.transfer;
  assert.deepEqual({ amount, currency, destination, reference }, expected);
  assert.ok(id.length > 0, 'the counterparty’s id is not empty');
  return id;
}

/** Cases of one send to a counterparty that does as it is asked. */
export const SENDING: readonly ConformanceCase[] = [
  {
    name: 'declares terms that leave a moment for a safe re-send, and room for our numbers',
    needs: [],
    async run({ gateway }) {
      const { properties } = gateway;
      checkTerms({ ...DELIVERY_DEFAULTS, ...properties });
      assert.match(properties.name, /^[a-z][a-z0-9_-]*$/);
      assert.ok(properties.maxNumberLength >= 64, 'a key, a merchant, a currency and a name need 64 characters');
    },
  },
  {
    name: 'a send is accepted and states the transfer that was frozen, in minor units',
    needs: [],
    async run(harness) {
      const transfer = harness.transfer();
      assertAccepted(await sent(harness, transfer), transfer);
    },
  },
  {
    name: 'amounts of currencies without decimals, with two and with three come back as they went',
    needs: [],
    async run(harness) {
      for (const [currency, amount] of [
        ['JPY', '80'],
        ['EUR', '8000'],
        ['KWD', '1230'],
      ] as const) {
        const transfer = harness.transfer({ currency, amount });
        assertAccepted(await sent(harness, transfer), transfer);
      }
    },
  },
  {
    name: 'the longest number that is declared is taken whole',
    needs: [],
    async run(harness) {
      const { reference } = harness.transfer();
      const longest = reference.padEnd(harness.gateway.properties.maxNumberLength, 'x');
      const transfer = harness.transfer({ reference: longest });
      assertAccepted(await sent(harness, transfer), transfer);
    },
  },
  {
    name: 'the same number with the same bytes again is the same transfer',
    needs: ['memory'],
    async run(harness) {
      const transfer = harness.transfer();
      const first = assertAccepted(await sent(harness, transfer), transfer);
      assert.equal(assertAccepted(await sent(harness, transfer), transfer), first);
      assert.equal(await harness.made(transfer.reference), 1);
    },
  },
  {
    name: 'the same number ten times at once is one transfer',
    needs: ['memory'],
    async run(harness) {
      const transfer = harness.transfer();
      const answers = await Promise.all(Array.from({ length: 10 }, () => sent(harness, transfer)));
      const ids = answers.filter(({ kind }) => kind !== 'in_flight').map((answer) => assertAccepted(answer, transfer));
      assert.equal(new Set(ids).size, 1);
      assert.equal(await harness.made(transfer.reference), 1);
    },
  },
  {
    name: 'the same number with another amount is key_reused, and moves nothing',
    needs: ['memory'],
    async run(harness) {
      const transfer = harness.transfer({ amount: '1250' });
      assertAccepted(await sent(harness, transfer), transfer);
      assert.equal((await sent(harness, { ...transfer, amount: '1251' })).kind, 'key_reused');
      assert.equal(await harness.made(transfer.reference), 1);
    },
  },
];
