import { join } from 'node:path';
import { parseRule } from '../jobs/rule.ts';
import { importFile } from '../jobs/settlement/import/import-file.ts';
import type { Tx } from '../kernel/sql.ts';
import { auditImportBy } from '../ops/import-audit.ts';
import { actionByKey } from '../store/actions.ts';
import { asTx, connect } from '../store/database.ts';
import { runsOfKey } from '../store/runs.ts';
import { type Drill, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { backendBlockedBy } from './lose-connection.ts';
import { importSample, type SampleMonths } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { typed } from './typed.ts';
import { until } from './until.ts';

/** Fourteen hours ahead of UTC, three and a half behind, and a quarter off the hour: each puts some instant in another month. */
const [OPENS, CLAIMS, READS] = ['Pacific/Kiritimati', 'America/St_Johns', 'Asia/Kathmandu'] as const;
/** Ended in every zone. */
const MONTH = '2026-10';
const NEW_ZONE = 'America/New_York';

/**
 * A worker in one time zone opens a month; before it claims it dies, the rule's zone is changed for later months, and a worker
 * in another time zone goes on. Then the file is imported again and the month asked for once more, under the new rule.
 */
export const zoneChanged: Drill = {
  name: 'zone-changed',
  fault:
    "processes in three time zones open, claim and read a month, and the rule's own zone changes in the middle of it",
  guard: "a period's bounds are computed once, in its rule's zone, and stored; no zone of a process takes part",
  async run({ setStage, tell }) {
    const stage = await setStage();
    const sample = await importSample(stage, { merchants: 20, months: 1, subjectsPerSlice: 10, last: MONTH });
    await stage.openGateway();
    const claims = await holdClaims(stage, sample);
    const first = await stage.start('worker', { TZ: OPENS });
    await startRun(stage, sample);
    await until('the claim of the first worker', claims.untilHeld, 60_000);
    await first.kill();
    const before = await bounds(stage.db);
    await changeZone(stage.db);
    await claims.letGo();
    tell(`opened with TZ=${OPENS}; its worker is dead, the rule says ${NEW_ZONE} now, and TZ=${CLAIMS} goes on`);
    await Promise.all([stage.start('worker', { TZ: CLAIMS }), stage.start('relay', { TZ: READS })]);
    const end = await keyEnd(stage, sample.key);
    await delivered(stage, sample.key);
    const added = await importAgain(stage);
    const again = await typed(`npx onceper run settlement --period ${sample.last} --json`, {
      ...stage.environment,
      TZ: READS,
    });
    const [opened] = await runsOfKey(stage.db, sample.key);
    const facts = await factsOf(stage.db, sample.registry, { key: sample.key, closing: '' }, stage.journal);
    return [
      fact('the month by its own zone', monthInShanghai(sample.last), before[sample.last] ?? 'none'),
      fact('periods whose bounds have moved', 0, moved(before, await bounds(stage.db))),
      fact('the period that was opened', sample.last, opened?.period ?? 'none'),
      fact('the rule version that settled it', 1, (await actionByKey(stage.db, sample.key))?.ruleVersion ?? 0),
      fact('the key', 'done', end),
      fact('rows added by the second import', 0, added),
      fact(
        'the month asked for under the new rule',
        'duplicate',
        (JSON.parse(again.stdout) as { decision: string }).decision,
      ),
      fact('documents', 1, facts.documents),
      fact('transfers in the journal', facts.payable, facts.transfers),
      fact('numbers executed twice', 0, facts.transfersTwice),
    ];
  },
};

/** Written down from the calendar: China keeps UTC+8 all year. */
function monthInShanghai(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  const midnight = (at: number) => new Date(Date.UTC(year, at, 1, -8)).toISOString().replace('.000Z', 'Z');
  return `${midnight(number - 1)}/${midnight(number)}`;
}

type Bounds = Readonly<Record<string, string>>;

async function bounds(tx: Tx): Promise<Bounds> {
  const { rows } = await tx.query<{ period: string; starts: string; ends: string }>(
    'select period, starts, ends from settlement.period order by starts',
  );
  return Object.fromEntries(rows.map(({ period, starts, ends }) => [period, `${starts}/${ends}`]));
}

function moved(before: Bounds, after: Bounds): number {
  return Object.keys(before).filter((period) => before[period] !== after[period]).length;
}

/** Holds the month's row, which the first claim seals: a claim stands there, the run admitted. */
async function holdClaims(stage: Stage, { last }: SampleMonths) {
  const client = await connect(stage.db);
  const tx = asTx(client);
  await tx.query('begin');
  await tx.query('select from settlement.period where period = $1 for update', [last]);
  const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
  return {
    untilHeld: () => backendBlockedBy(stage.db, rows[0]?.pid ?? 0),
    async letGo() {
      await tx.query('rollback');
      client.release();
    },
  };
}

/** What activating a second version of the rule does. */
async function changeZone(tx: Tx): Promise<void> {
  await tx.query(
    `with changed as (
       insert into onceper.rule (job, version, body, loaded_by)
       select job, 2, body || jsonb_build_object('zone', $1::text), 'the drill' from onceper.rule where job = 'settlement' returning job)
     update onceper.job j set active_rule = 2 from changed where j.job = changed.job`,
    [NEW_ZONE],
  );
}

async function importAgain(stage: Stage): Promise<number> {
  const { rows } = await stage.db.query<{ body: unknown }>('select body from onceper.rule where version = 2');
  const imported = await importFile({
    connect: () => connect(stage.db),
    file: join(stage.folder, 'sample.csv'),
    source: 'generic',
    actor: stage.actor,
    rule: parseRule(rows[0]?.body, 'the drill'),
    audit: auditImportBy(stage.actor),
  });
  return imported.added;
}
