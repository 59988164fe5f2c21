import { nominalTimeOf } from '../jobs/occasion.ts';
import { parseRule } from '../jobs/rule.ts';
import { backfillCommand } from '../ops/commands.ts';
import { transaction } from '../store/database.ts';
import { activeRule } from '../store/rules.ts';
import { runsOfKey } from '../store/runs.ts';
import { type Drill, type Fact, fact } from './drill.ts';
import { executedTransfers, factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

/**
 * Somebody believes that a settled month must be settled again and makes a key for it by SQL, in every way that comes to mind;
 * at last he types the line that backfills it. The database itself refuses each new key by a named constraint.
 */
export const backfillNewKey: Drill = {
  name: 'backfill-new-key',
  fault: 'a hand makes a new key for a settled month by SQL, in ten ways, and then backfills it by the usual line',
  guard: 'the key derives from job and period by a constraint of the database',
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: 20, months: 1, subjectsPerSlice: 10 });
    await stage.openGateway();
    await Promise.all([stage.start('worker'), stage.start('relay')]);
    await typed('npx onceper schedule apply settlement', stage.environment);
    await startRun(stage, sample);
    await keyEnd(stage, sample.key);
    await delivered(stage, sample.key);
    const paid = executedTransfers(stage.journal, 'settlement:').executed;
    tell(`${sample.key} is settled and ${paid} payouts are paid; now somebody makes a new key for it`);
    const refusals: Fact[] = [];
    for (const { what, sql, constraint } of attempts(sample)) {
      refusals.push(fact(what, constraint, await refusedBy(stage, sql)));
    }
    const line = await backfill(stage, sample);
    tell(line);
    const second = await until('the backfilled run', async () => (await runsOfKey(stage.db, sample.key))[1], 30_000);
    await delivered(stage, sample.key);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    return [
      ...refusals,
      fact('the usual backfill of the month', 'duplicate', second.decision),
      fact('keys in the ledger', 1, await keys(stage)),
      fact('documents', 1, facts.documents),
      fact('further transfers', 0, executedTransfers(stage.journal, '').executed - paid),
    ];
  },
};

interface Attempt {
  readonly what: string;
  readonly sql: string;
  readonly constraint: string;
}

/** Ten ways to a second key of a month, and what refuses each. */
function attempts({ key, last }: SampleMonths): readonly Attempt[] {
  const action = (newKey: string, period: string, adj: string | null = null) =>
    `insert into onceper.action (key, job, period, adj, state, owner_run, lease_until, fingerprint, overrides, rule_version, release)
     select '${newKey}', job, '${period}', ${adj === null ? 'null' : `'${adj}'`}, 'admitted', owner_run, clock_timestamp(),
            fingerprint, overrides, rule_version, release
       from onceper.action where key = '${key}'`;
  const other = last.replace('-', '/');
  const week = `${last.slice(0, 'YYYY'.length)}-W40`;
  const derives = 'action_key_derives_from_period';
  return [
    { what: 'a key that ends in :retry1', sql: action(`${key}:retry1`, last), constraint: derives },
    {
      what: 'a period that ends in :retry1',
      sql: action(`${key}:retry1`, `${last}:retry1`),
      constraint: 'action_period_form',
    },
    {
      what: 'the month written with a slash',
      sql: action(`settlement:${other}`, other),
      constraint: 'action_period_form',
    },
    { what: 'a day of the month', sql: action(`${key}-01`, `${last}-01`), constraint: 'action_period_of_kind' },
    {
      what: 'a week',
      sql: action(`settlement:${week}`, week),
      constraint: 'action_period_of_kind',
    },
    {
      what: 'adjustment retry1',
      sql: action(`${key}:adj-retry1`, last, 'retry1'),
      constraint: 'action_adj_is_a_number',
    },
    {
      what: 'adjustment 1, delivering',
      sql: `insert into onceper.action (key, job, period, adj, state, owner_run, lease_until, fingerprint, overrides, rule_version,
                                        release, delivering, result, done_at)
            select key || ':adj-1', job, period, '1', 'done', owner_run, clock_timestamp(), fingerprint, overrides, rule_version,
                   release, true, result, done_at from onceper.action where key = '${key}'`,
      constraint: 'action_adj_delivers_nothing',
    },
    {
      what: 'the key renamed',
      sql: `update onceper.action set key = key || ':old' where key = '${key}'`,
      constraint: derives,
    },
    {
      what: 'the key deleted',
      sql: `delete from onceper.action where key = '${key}'`,
      constraint: 'action_never_deleted',
    },
    {
      what: 'payouts under new numbers',
      sql: `insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence)
            select replace(number, '${key}', '${key}:retry1'), key, subject, effect, destination, body, written_by_fence
              from onceper.outbox where key = '${key}'`,
      constraint: 'outbox_number_derives_from_key',
    },
  ];
}

/** Runs a statement in a transaction of its own, which is rolled back where nothing refuses it. */
async function refusedBy(stage: Stage, sql: string): Promise<string> {
  const accepted = new Error('accepted');
  try {
    await transaction(stage.db, {}, async (tx) => {
      await tx.query(sql);
      throw accepted;
    });
    return 'accepted';
  } catch (error) {
    if (error === accepted) return 'accepted';
    if (error instanceof Error && 'at' in error && typeof error.at === 'string') return error.at;
    throw error;
  }
}

async function backfill(stage: Stage, { last }: SampleMonths): Promise<string> {
  const stored = await activeRule(stage.db, 'settlement');
  const at = nominalTimeOf(parseRule(stored?.body, 'the drill'), last);
  const line = backfillCommand('settlement', at, at);
  await typed(line, stage.environment);
  return line;
}

async function keys(stage: Stage): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>('select count(*)::int4 as n from onceper.action');
  return rows[0]?.n ?? 0;
}
