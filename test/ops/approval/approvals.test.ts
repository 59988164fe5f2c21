import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { approveRequest, type Decided, executeApproval, rejectRequest } from '../../../src/ops/approval/decide.ts';
import { kindOfWaiting } from '../../../src/ops/approval/held-run.ts';
import { editRequest, type Requested, requestApproval } from '../../../src/ops/approval/request.ts';
import { actionByKey } from '../../../src/store/actions.ts';
import { type Approval, approvalById, listApprovals } from '../../../src/store/approvals.ts';
import { runByStartId } from '../../../src/store/runs.ts';
import { waiversOf } from '../../../src/store/waivers.ts';
import { forced } from '../../support/forced.ts';
import { estimateOf } from '../../support/tiny-job.ts';
import { createStory, type Story } from '../story.ts';

/** What the job says of the periods while a test runs. */
const world = { isEmpty: false, subjects: 2 };

let story: Story;
beforeAll(async () => {
  story = await createStory({
    rule: { first: '2020-01', latenessDays: 10, budget: 1 },
    hooks: {
      inspect: () =>
        Promise.resolve(world.isEmpty ? { kind: 'held', code: 'empty', reason: 'nothing' } : { kind: 'ready' }),
      estimate: () => Promise.resolve(estimateOf(world.subjects)),
    },
  });
});
afterAll(() => story.drop());

let month = 0;
let period = '';
beforeEach(() => {
  Object.assign(world, { isEmpty: false, subjects: 2 });
  month += 1;
  period = `${2020 + Math.floor((month - 1) / 12)}-${String(((month - 1) % 12) + 1).padStart(2, '0')}`;
});

const parts = () => ({ registry: story.services.registry, release: 'test' });
const lateRun = (input = {}) => story.open(period, { actor: 'os:ann', ...input });
const openRequests = (key = `tiny:${period}`) => listApprovals(story.db, { states: ['requested'], key, limit: 9 });
async function requestOf(key?: string): Promise<Approval> {
  const [approval] = await openRequests(key);
  if (approval === undefined) throw new Error('no request is open');
  return approval;
}
const approve = ({ id, digest }: Pick<Approval, 'id' | 'digest'>, actor: string) =>
  approveRequest(story.db, { token: null, id, digest, actor, reason: null });
const execute = ({ id }: Pick<Approval, 'id'>, actor = 'os:bob') =>
  executeApproval(story.db, parts(), { token: null, id, actor });
const codeOf = (decided: Decided) => (decided.kind === 'refused' ? decided.code : decided.kind);
const release = async (run: string, actor = 'os:ann', more = {}): Promise<Requested> =>
  requestApproval(story.db, parts(), {
    kind: await kindOfWaiting(story.db, run),
    ask: { run },
    actor,
    reason: 'seen',
    ...more,
  });
async function audited(subject: string): Promise<string[]> {
  const { rows } = await story.db.query<{ said: string }>(
    `select actor || ' ' || verb || coalesce(' ' || (detail::jsonb ->> 'code'), '') as said
       from onceper.audit where subject = $1 order by seq`,
    [subject],
  );
  return rows.map((row) => row.said);
}

describe('a run that is held for its lateness', () => {
  test('opens a request of whoever started it, with what would be done; held again it is the same request', async () => {
    const { run, decision, code } = await lateRun();
    expect([decision, code]).toEqual(['held', 'late']);
    const request = await requestOf();
    expect(request).toMatchObject({
      kind: 'late_run',
      subject: run,
      requestedBy: 'os:ann',
      state: 'requested',
      plan: { period, run, heldFor: 'late', keyState: 'none', fence: '0', ruleVersion: 1, expected: estimateOf(2) },
    });
    await lateRun({ startId: run });
    await release(run, 'os:eve');
    expect(await openRequests()).toEqual([request]);
    expect(await audited(request.id)).toEqual(['os:ann request']);
  });

  test('goes on as the very same run, once another has approved what was shown', async () => {
    const { run } = await lateRun();
    const request = await requestOf();
    expect(codeOf(await approve(request, 'os:bob'))).toBe('approved');
    const executed = await execute(request);
    expect(executed).toMatchObject({ kind: 'executed', wake: { kind: 'tick', run: { id: run, job: 'tiny' } } });
    expect(await story.open(period, { startId: run })).toMatchObject({ run, decision: 'admitted', owner: run });
    expect(await runByStartId(story.db, run)).toMatchObject({ releasedBy: 'os:bob' });
    expect(await audited(request.id)).toEqual(['os:ann request', 'os:bob approve', 'os:bob execute']);
  });

  test('can’t by its approval claim a key that was cancelled since, and asks for that by another request', async () => {
    const { run } = await lateRun();
    const request = await requestOf();
    await approve(request, 'os:bob');
    await execute(request);
    const other = await lateRun();
    const theirs = await requestOf();
    await approve(theirs, 'os:bob');
    await execute(theirs);
    expect(await story.open(period, { startId: other.run })).toMatchObject({ decision: 'admitted' });
    await forced(story.db, `update onceper.action set state = 'cancelled' where key = $1`, [`tiny:${period}`]);
    expect(await story.open(period, { startId: run })).toMatchObject({ decision: 'held', code: 'cancelled' });
    expect(await requestOf()).toMatchObject({ kind: 'claim_again', plan: { keyState: 'cancelled', fence: '0' } });
  });

  test('is held again where something else holds it too, which its approval says nothing of', async () => {
    const { run } = await lateRun();
    const late = await requestOf();
    await approve(late, 'os:bob');
    await execute(late);
    world.isEmpty = true;
    expect(await story.open(period, { startId: run })).toMatchObject({ decision: 'held', code: 'empty' });
    const empty = await requestOf();
    expect(empty.kind).toBe('empty_period');
    await approve(empty, 'os:bob');
    await execute(empty);
    expect(await story.open(period, { startId: run })).toMatchObject({ decision: 'admitted' });
    expect((await waiversOf(story.db, run)).map(({ code }) => code).sort()).toEqual(['empty', 'late']);
  });
});

describe('the owner of a key that spent its budget', () => {
  test('is admitted again by an approval of that fence, and needs another one when it is spent again', async () => {
    const { run } = await lateRun();
    const late = await requestOf();
    await approve(late, 'os:bob');
    await execute(late);
    await story.open(period, { startId: run });
    for (const [pass, fence] of [
      [1, 1n],
      [2, 2n],
    ] as const) {
      const grant = await story.claim(run, pass);
      await story.fail(grant, 'connection_lost');
      expect(await actionByKey(story.db, `tiny:${period}`)).toMatchObject({ state: 'exhausted', fence });
      const { approval } = await release(run);
      expect(approval).toMatchObject({ kind: 'claim_again', plan: { keyState: 'exhausted', fence: String(fence) } });
      await approve(approval, 'os:bob');
      expect(await execute(approval)).toMatchObject({ kind: 'executed' });
      expect(await actionByKey(story.db, `tiny:${period}`)).toMatchObject({ state: 'admitted', budgetFrom: fence });
    }
  });
});

describe('an approval', () => {
  test('is refused to whoever asked, whoever edited last, and a digest that was not shown', async () => {
    await lateRun();
    const request = await requestOf();
    expect(codeOf(await approve(request, 'os:ann'))).toBe('own_request');
    expect(codeOf(await approve({ ...request, digest: '0'.repeat(64) }, 'os:bob'))).toBe('digest_differs');
    const edited = await editRequest(story.db, parts(), { id: request.id, actor: 'os:bob', reason: 'checked it' });
    expect(edited).toMatchObject({ revision: 2, editedBy: 'os:bob', requestedBy: 'os:ann', state: 'requested' });
    expect(edited.digest).not.toBe(request.digest);
    expect(codeOf(await approve(edited, 'os:bob'))).toBe('own_request');
    expect(codeOf(await approve(edited, 'os:ann'))).toBe('own_request');
    expect(codeOf(await approve(request, 'os:cyd'))).toBe('digest_differs');
    expect(codeOf(await approve(edited, 'os:cyd'))).toBe('approved');
    expect(await audited(request.id)).toEqual([
      'os:ann request',
      'os:ann refuse own_request',
      'os:bob refuse digest_differs',
      'os:bob edit',
      'os:bob refuse own_request',
      'os:ann refuse own_request',
      'os:cyd refuse digest_differs',
      'os:cyd approve',
    ]);
  });

  test('is refused by the database too, where somebody types it past every check', async () => {
    await lateRun();
    const { id } = await requestOf();
    const typed = (actor: string) =>
      forced(
        story.db,
        `update onceper.approval set state = 'approved', decided_by = $2, decided_at = clock_timestamp() where id = $1`,
        [id, actor],
      );
    await expect(typed('os:ann')).rejects.toMatchObject({ at: 'approval_approver_is_not_asker' });
    await expect(typed('OS:Ann')).rejects.toMatchObject({ at: 'approval_actor_form' });
    const forged = story.db.query(
      `insert into onceper.waiver (run, code, fence, approval) values ('r', 'late', 0, $1)`,
      [id],
    );
    await expect(forged).rejects.toMatchObject({ at: 'waiver_needs_execution' });
  });

  test('is void when the request is edited after it', async () => {
    await lateRun();
    const request = await requestOf();
    await approve(request, 'os:bob');
    await editRequest(story.db, parts(), { id: request.id, actor: 'os:ann', reason: 'another reason' });
    expect(codeOf(await execute(request))).toBe('not_approved');
  });

  test('is executed once, by one of twenty who try at once', async () => {
    await lateRun();
    const request = await requestOf();
    await approve(request, 'os:bob');
    const tried = await Promise.all(Array.from({ length: 20 }, () => execute(request)));
    expect(tried.map(codeOf).sort()).toEqual([...Array.from({ length: 19 }, () => 'already_executed'), 'executed']);
    expect(codeOf(await execute(request))).toBe('already_executed');
    expect(codeOf(await approve(request, 'os:cyd'))).toBe('already_decided');
  });

  test('is decided once, by one of twenty deciders at once, whatever they decide', async () => {
    await lateRun();
    const request = await requestOf();
    const tried = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        at % 2 === 0
          ? approve(request, `os:boss-${at}`)
          : rejectRequest(story.db, { token: null, id: request.id, actor: `os:boss-${at}`, reason: 'no' }),
      ),
    );
    const won = tried.filter(({ kind }) => kind !== 'refused');
    expect(won).toHaveLength(1);
    expect(tried.filter((decided) => codeOf(decided) === 'already_decided')).toHaveLength(19);
    expect(await approvalById(story.db, request.id)).toMatchObject({ state: won[0]?.kind });
    expect((await audited(request.id)).filter((line) => / (approve|reject)$/.test(line))).toHaveLength(1);
  });

  test('is refused after a rejection, which may be the asker’s own', async () => {
    const { run } = await lateRun();
    const request = await requestOf();
    await rejectRequest(story.db, { token: null, id: request.id, actor: 'os:ann', reason: 'a mistake' });
    expect(codeOf(await approve(request, 'os:bob'))).toBe('already_decided');
    expect(codeOf(await execute(request))).toBe('already_decided');
    const again = await release(run);
    expect(again).toMatchObject({ isNew: true });
    expect(again.approval.id).not.toBe(request.id);
  });

  test('is refused when its time is over, before it is approved and before it is executed', async () => {
    const { run } = await lateRun();
    const first = await requestOf();
    await rejectRequest(story.db, { token: null, id: first.id, actor: 'os:ann', reason: 'shorter' });
    const { approval: brief } = await release(run, 'os:ann', { validMs: 0 });
    expect(brief.state).toBe('expired');
    expect(codeOf(await approve(brief, 'os:bob'))).toBe('approval_expired');
    const { approval: long } = await release(run);
    await approve(long, 'os:bob');
    await story.db.query(
      `alter table onceper.approval disable trigger approval_guard;
       update onceper.approval set expires_at = decided_at where id = '${long.id}';
       alter table onceper.approval enable trigger approval_guard`,
    );
    expect(codeOf(await execute(long))).toBe('approval_expired');
    expect(await approvalById(story.db, long.id)).toMatchObject({ state: 'expired', executedAt: null });
    expect(await waiversOf(story.db, run)).toEqual([]);
  });

  test('of a world that has moved is refused, says what moved, and is not executed when the world moves back', async () => {
    const { run } = await lateRun();
    const request = await requestOf();
    await approve(request, 'os:bob');
    world.subjects = 3;
    const refused = await execute(request);
    expect(refused).toMatchObject({ kind: 'refused', code: 'world_moved', approval: { state: 'stale' } });
    expect(refused).toMatchObject({ reason: 'what it comes to has changed (expected.amounts.GBP.payout)' });
    world.subjects = 2;
    expect(codeOf(await execute(request))).toBe('already_decided');
    expect(await waiversOf(story.db, run)).toEqual([]);
    expect((await audited(request.id)).at(-2)).toBe('os:bob refuse world_moved');
  });

  test('of a run that was settled meanwhile by another is refused', async () => {
    await lateRun();
    const request = await requestOf();
    await approve(request, 'os:bob');
    const other = await lateRun({ startId: randomUUID() });
    const theirs = (await openRequests()).find(({ subject }) => subject === other.run);
    await approve(theirs ?? request, 'os:bob');
    await execute(theirs ?? request);
    await story.open(period, { startId: other.run });
    expect(await execute(request)).toMatchObject({ code: 'world_moved', reason: 'keyState was none and is admitted' });
  });

  test('whose plan was changed by hand has another digest than the one that was stored and shown', async () => {
    await lateRun();
    const request = await requestOf();
    await story.db.query(
      `alter table onceper.approval disable trigger approval_guard;
       update onceper.approval set plan = jsonb_set(plan, '{expected,subjects}', '1') where id = '${request.id}';
       alter table onceper.approval enable trigger approval_guard`,
    );
    const shown = await approvalById(story.db, request.id);
    expect(shown?.digest).not.toBe(request.digest);
    expect(codeOf(await approve(request, 'os:bob'))).toBe('digest_differs');
    expect(codeOf(await approve(shown ?? request, 'os:bob'))).toBe('digest_differs');
  });
});
