import type { Tx } from '../kernel/sql.ts';
import { attemptsOfKey } from '../store/attempts.ts';
import { asTx, connect } from '../store/database.ts';
import { type Drill, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { importSample } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { until } from './until.ts';

const MERCHANTS = 40;
const SLICES = 4;

/**
 * The business is done and the record of it is not: every slice has written its lines and postings, and its connection is
 * ended before its effects, its result and its COMMIT. One transaction holds them all, so nothing half is left.
 */
export const effectWithoutRecord: Drill = {
  name: 'effect-without-record',
  fault: 'the database ends every slice after its business rows were written and before they were recorded',
  guard: 'business rows, effects and the record of a slice commit in one transaction',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, {
      merchants: MERCHANTS,
      months: 1,
      subjectsPerSlice: MERCHANTS / SLICES,
      rule: { budget: 2 },
    });
    await stage.openGateway();
    const [held] = await Promise.all([holdOutbox(stage), stage.start('worker')]);
    await startRun(stage, sample);
    const standing = await until('every slice to stand before its effects', () => held.standing(SLICES), 60_000);
    tell(`${standing.length} slices have written their business rows; their backends are ended now`);
    await held.endBackends(standing);
    const left = await rowsLeft(stage.db, sample.key);
    await held.letGo();
    const [end] = await Promise.all([keyEnd(stage, sample.key), stage.start('relay')]);
    if (end === 'done') await delivered(stage, sample.key);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    const attempts = await attemptsOfKey(stage.db, sample.key);
    return [
      fact('slices ended between business and record', SLICES, standing.length),
      fact('business rows left by them', 0, left.business),
      fact('slices recorded, effects written', '0, 0', `${left.slices}, ${left.effects}`),
      fact('how the attempts ended', 'failed (connection_lost), done', attempts.map(ending).join(', ')),
      fact('the key', 'done', end),
      fact('documents', 1, facts.documents),
      fact('transfers in the journal', facts.payable, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
      ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
    ];
  },
};

function ending({ outcome, code }: { outcome: string | null; code: string | null }): string {
  return code === null ? String(outcome) : `${outcome} (${code})`;
}

/** Keeps everybody from writing effects; a slice that has come so far stands there, its business rows written. */
async function holdOutbox(stage: Stage) {
  const client = await connect(stage.db);
  const tx = asTx(client);
  await tx.query('begin');
  await tx.query('lock table onceper.outbox in share mode');
  const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
  const holder = rows[0]?.pid ?? 0;
  return {
    async standing(count: number) {
      const waiting = await waitingFor(stage.db, holder);
      return waiting.length === count ? waiting : null;
    },
    async endBackends(pids: readonly number[]) {
      await stage.db.query('select pg_terminate_backend(pid, 10000) from unnest($1::int4[]) as b (pid)', [pids]);
    },
    async letGo() {
      await tx.query('rollback');
      client.release();
    },
  };
}

async function waitingFor(tx: Tx, holder: number): Promise<number[]> {
  const { rows } = await tx.query<{ pid: number }>(
    'select pid from pg_stat_activity where $1 = any (pg_blocking_pids(pid))',
    [holder],
  );
  return rows.map((row) => row.pid);
}

/** What anybody can see of a key that no slice has finished. */
async function rowsLeft(tx: Tx, key: string): Promise<{ business: number; slices: number; effects: number }> {
  const { rows } = await tx.query<{ business: number; slices: number; effects: number }>(
    `select ((select count(*) from settlement.line where key = $1)
             + (select count(*) from settlement.posting where key = $1))::int4 as business,
            (select count(*)::int4 from onceper.slice where key = $1 and done_at is not null) as slices,
            (select count(*)::int4 from onceper.outbox where key = $1) as effects`,
    [key],
  );
  return rows[0] ?? { business: -1, slices: -1, effects: -1 };
}
