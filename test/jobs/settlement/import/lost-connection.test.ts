import { beforeEach, expect, it } from 'vitest';
import { connect } from '../../../../src/store/database.ts';
import { waitFor } from '../../../support/wait.ts';
import { atCommitOfRows } from '../at-commit.ts';
import { csv, placesOf } from '../rows.ts';
import { Bench } from '../settling.ts';

const bench = Bench.forThisFile();
beforeEach(() => bench.empty());

const file = csv('m-1 2026-03-01 1.00 GBP', 'm-1 2026-03-01 1.00 GBP');

it('an import whose connection is ended in the middle stores nothing, and is whole when it is repeated', async () => {
  const blocking = await connect(bench.db);
  try {
    await blocking.query('begin');
    await blocking.query(`insert into settlement.merchant (id, source, name) values ('m-1', 'generic', 'm-1')`);
    const importing = bench.importText(file).catch((error: unknown) => error);
    await waitFor(() => endWhoWaits(), { what: 'the import to wait in its insert' });
    expect(await importing).toMatchObject({ code: '57P01' });
    await blocking.query('rollback');
  } finally {
    blocking.release();
  }
  expect(await placesOf(bench)).toEqual([]);
  expect(await bench.importText(file)).toMatchObject({ kind: 'imported', added: 2 });
});

it('an import that loses the answer to its commit says so, and finds its rows known when it is repeated', async () => {
  const losing = bench.importText(file, {
    connect: async () =>
      atCommitOfRows(await connect(bench.db), async (commit) => {
        await commit();
        throw new Error('Connection terminated unexpectedly');
      }),
  });
  await expect(losing).rejects.toMatchObject({
    code: 'commit_unknown',
    remedy: expect.stringContaining('import the same file again'),
  });
  expect(await bench.importText(file)).toMatchObject({ kind: 'imported', added: 0, known: 2 });
});

it('an import whose commit the server certainly rolled back says why, and adds its rows when it is repeated', async () => {
  const refused = bench.importText(file, {
    connect: async () => {
      const client = await connect(bench.db);
      return atCommitOfRows(client, async () => {
        await client.query('rollback');
        throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
      });
    },
  });
  await expect(refused).rejects.toMatchObject({ code: '40P01' });
  expect(await bench.importText(file)).toMatchObject({ kind: 'imported', added: 2 });
});

/** Ends the session that waits for a lock, as an operator or a failover would. */
async function endWhoWaits(): Promise<boolean> {
  const { rowCount } = await bench.db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rowCount > 0;
}
