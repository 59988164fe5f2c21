import { afterAll, beforeAll, expect, test } from 'vitest';
import { approveRequest, executeApproval } from '../../../src/ops/approval/decide.ts';
import { listApprovals } from '../../../src/store/approvals.ts';
import { transaction } from '../../../src/store/database.ts';
import { lockJob } from '../../../src/store/rules.ts';
import { waitFor } from '../../support/wait.ts';
import { createStory, type Story } from '../story.ts';

let story: Story;
beforeAll(async () => {
  story = await createStory({ rule: { first: '2020-01', latenessDays: 10, budget: 1 } });
});
afterAll(() => story.drop());

/** How many wait for a lock in this database. */
async function waiting(): Promise<number> {
  const { rows } = await story.db.query<{ n: number }>(
    `select count(*)::int4 as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.n ?? 0;
}

test('a held run that is decided again while its approval is executed goes on, and asks for nothing anew', async () => {
  const { run } = await story.open('2020-01', { actor: 'os:ann' });
  const asked = () => listApprovals(story.db, { states: ['requested'], key: 'tiny:2020-01', limit: 9 });
  const [request] = await asked();
  const { id = '', digest = '' } = request ?? {};
  await approveRequest(story.db, { token: null, id, digest, actor: 'os:bob', reason: null });
  const parts = { registry: story.services.registry, release: 'test' };
  const { executed, again } = await transaction(story.db, {}, async (tx) => {
    await lockJob(tx, 'tiny');
    const executed = executeApproval(story.db, parts, { token: null, id, actor: 'os:bob' });
    await waitFor(async () => (await waiting()) === 1, { what: 'the execution to wait for the job' });
    const again = story.open('2020-01', { startId: run });
    await waitFor(async () => (await waiting()) === 2, { what: 'the decision to wait behind it' });
    return { executed, again };
  });
  expect(await executed).toMatchObject({ kind: 'executed' });
  expect(await again).toMatchObject({ run, decision: 'admitted' });
  expect(await asked()).toEqual([]);
});
