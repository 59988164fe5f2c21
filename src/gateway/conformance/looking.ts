import assert from 'node:assert/strict';
import type { ConformanceCase } from './harness.ts';
import { assertAccepted, sent } from './sending.ts';

/** Cases of what is known afterwards: look-ups by number, and the listing that reconciliation reads. */
export const LOOKING: readonly ConformanceCase[] = [
  {
    name: 'a look-up finds the one transfer of its number, as it was frozen',
    needs: ['memory'],
    async run(harness) {
      const transfer = harness.transfer();
      const id = assertAccepted(await sent(harness, transfer), transfer);
      const answer = await harness.gateway.lookUp(transfer.reference);
      assert.ok(answer.kind === 'found', `expected found, got ${answer.kind}`);
      assert.deepEqual(
        answer.transfers.map((found) => ({ ...found, status: '' })),
        [{ id, status: '', ...transfer }],
      );
    },
  },
  {
    name: 'a look-up of a number that was never sent is not_found',
    needs: ['memory'],
    async run({ gateway, transfer }) {
      assert.equal((await gateway.lookUp(transfer().reference)).kind, 'not_found');
    },
  },
  {
    name: 'a look-up that shows other people’s transfers finds nothing of ours',
    needs: [],
    async run({ gateway, transfer }) {
      const { reference } = transfer();
      const answer = await gateway.lookUp(reference);
      if (answer.kind === 'found') assert.ok(answer.transfers.every((found) => found.reference === reference));
    },
  },
  {
    name: 'a listing pages through every transfer of a time, oldest first, each once',
    needs: ['memory', 'clock'],
    async run(harness) {
      const ids: string[] = [];
      for (let count = 0; count < 5; count += 1) {
        const transfer = harness.transfer();
        ids.push(assertAccepted(await sent(harness, transfer), transfer));
      }
      const listed: string[] = [];
      const range = { from: '2000-01-01T00:00:00Z', to: '2100-01-01T00:00:00Z', limit: 2 };
      for (let after: string | undefined; ; after = listed.at(-1)) {
        const page = await harness.gateway.list(after === undefined ? range : { ...range, after });
        assert.ok(page.transfers.length <= range.limit);
        listed.push(...page.transfers.map(({ id }) => id));
        if (!page.hasMore) break;
        assert.ok(page.transfers.length > 0, 'a page that says there is more holds something');
      }
      assert.deepEqual(
        listed.filter((id) => ids.includes(id)),
        ids,
      );
      assert.equal(new Set(listed).size, listed.length);
    },
  },
  {
    name: 'a listing of a time before anything was made is empty',
    needs: ['memory', 'clock'],
    async run(harness) {
      const transfer = harness.transfer();
      assertAccepted(await sent(harness, transfer), transfer);
      const before = { from: '2000-01-01T00:00:00Z', to: '2000-02-01T00:00:00Z', limit: 10 };
      assert.deepEqual(await harness.gateway.list(before), { transfers: [], hasMore: false });
    },
  },
  {
    name: 'a listing that can’t be had rejects: a missing page is not an empty one',
    needs: [],
    async run({ unreachable }) {
      await assert.rejects(unreachable.list({ from: '2026-01-01T00:00:00Z', to: '2026-02-01T00:00:00Z', limit: 1 }), {
        code: 'gateway_unreachable',
      });
    },
  },
];
