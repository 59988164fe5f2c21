import { expect } from 'vitest';
import { documentOf } from '../app/command-line.ts';
import { waitFor } from '../support/wait.ts';
import { type Backfilling, gate, type Request, world } from './backfilling.ts';

/**
 * Approves every held day (all but the first) of a backfill twice at once, while signals wake its dispatcher until it has
 * continued as new, and cancels it ten times: each decision counts once, and none is lost. Returns how many decisions, and
 * signals that follow them, were sent.
 */
export async function decideAndWake(people: Backfilling, days: number): Promise<number> {
  const last = new Date(Date.UTC(2026, 0, days)).toISOString().slice(0, 10);
  world.inspect = (period) =>
    period === '2026-01-01' ? { kind: 'ready' } : { kind: 'held', code: 'empty', reason: 'nothing' };
  const { client } = await people.start();
  const { id, digest } = await people.request('daily', '2026-01-01', last);
  await people.approve({ id, digest });
  await waitFor(() => gate.inside.has('daily:2026-01-01'), { what: 'the first day, which keeps the backfill going' });
  const handle = client.workflow.getHandle(`backfill-${id}`);
  const first = (await handle.describe()).runId;
  const seen = new Set<string>();
  let sent = 0;
  let approved = 0;
  const held = days - 1;
  // The first day stays inside; those that are approved go through.
  gate.isShut = false;
  const hasContinued = waitFor(
    async () => {
      await handle.signal('wake');
      return approved === held && (await handle.describe()).runId !== first;
    },
    { what: 'the dispatcher to continue as new', timeoutMs: 240_000, everyMs: 100 },
  );
  while (seen.size < held) {
    const listed = documentOf<{ approvals: (Request & { kind: string })[] }>(
      await people.ann('approvals', 'list', '--state', 'requested', '--limit', '100', '--json'),
    );
    const fresh = listed.approvals.filter(({ id: one, kind }) => kind === 'empty_period' && !seen.has(one));
    const decide = async (one: Request) => {
      seen.add(one.id);
      const twice = [1, 2].map(() => people.bob('approvals', 'approve', one.id, '--digest', one.digest));
      const codes = (await Promise.all(twice)).map(({ code }) => code);
      expect(codes.toSorted((a, b) => a - b)).toEqual([0, 3]);
      approved += 1;
      await Promise.all([handle.signal('wake'), handle.signal('wake')]);
      sent += 4;
    };
    await Promise.all(fresh.map(decide));
  }
  await hasContinued;
  expect(approved).toBe(held);
  const cancels = Array.from({ length: 10 }, () => people.bob('backfill', 'cancel', id, '--reason', 'enough'));
  expect((await Promise.all(cancels)).filter(({ code }) => code === 0)).toHaveLength(1);
  gate.open();
  await waitFor(async () => (await people.show(id)).backfill.state === 'cancelled', { what: 'the backfill to end' });
  const { rows } = await people.db.query<{ executed: number; waived: number; cancels: number }>(
    `select (select count(*)::int4 from onceper.approval where kind = 'empty_period' and state = 'executed') as executed,
            (select count(*)::int4 from onceper.waiver where code = 'empty') as waived,
            (select count(*)::int4 from onceper.audit where verb = 'backfill-cancel') as cancels`,
  );
  expect(rows).toEqual([{ executed: held, waived: held, cancels: 1 }]);
  await waitFor(
    async () =>
      (await people.db.query(`select from onceper.action where job = 'daily' and state = 'done'`)).rowCount === days,
    { what: 'all days to be done, each by its own run' },
  );
  return sent;
}
