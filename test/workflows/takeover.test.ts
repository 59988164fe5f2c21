import { expect, test } from 'vitest';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import { documentOf } from '../app/command-line.ts';
import { waitFor } from '../support/wait.ts';
import { gate, type Request, useBackfilling } from './backfilling.ts';

const people = useBackfilling();

test('a key whose holder will not finish is taken over long before its lease ends, and keeps what was in flight', async () => {
  const { client } = await people.start();
  await people.ann('run', 'daily');
  const key = await waitFor(() => [...gate.inside.keys()][0], { what: 'the holder to be inside its slice' });
  const first = (await client.workflow.getHandle(key).describe()).runId;
  const asked = await people.ann('takeover', key, '--reason', 'it hangs', '--json');
  const { approval } = documentOf<{ approval: Request }>(asked);
  expect(await people.ann('approvals', 'approve', approval.id, '--digest', approval.digest)).toMatchObject({ code: 3 });
  await people.approve(approval);
  expect((await client.workflow.getHandle(key).describe()).runId).not.toBe(first);
  expect((await client.workflow.getHandle(key, first).describe()).status.name).toBe('TERMINATED');
  await waitFor(
    async () =>
      (await people.db.query('select from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0')).rowCount > 0,
    { what: 'the next claim to wait for the slice in flight' },
  );
  gate.open();
  await waitFor(() => people.isDone(key), { what: 'the key to be done', timeoutMs: 15_000 });
  expect(await actionByKey(people.db, key)).toMatchObject({ fence: 2n });
  expect((await attemptsOfKey(people.db, key)).map(({ outcome, slicesFinished }) => [outcome, slicesFinished])).toEqual(
    [
      ['lease_expired', 1],
      ['done', 0],
    ],
  );
});
