import { attemptsOfKey } from '../store/attempts.ts';
import { runsOfKey } from '../store/runs.ts';
import { type Drill, type DrillTools, type Fact, fact } from './drill.ts';
import { factsOf } from './facts.ts';
import { delivered, keyEnd } from './key-end.ts';
import { importSample } from './sample-month.ts';
import type { Stage } from './stage.ts';
import { startRun } from './start-run.ts';
import { type Spoken, startPostgresProxy } from './tcp-proxy.ts';

/** A transaction is known by a statement in it. Of each of these the answer to the first COMMIT is lost. */
const LOST = {
  open: 'insert into onceper.action',
  claim: 'insert into onceper.attempt',
  slice: 'update onceper.slice set fence',
  close: "set state = 'done'",
  record: 'insert into onceper.delivery',
} as const;
type Step = keyof typeof LOST;
const STEPS = Object.keys(LOST) as Step[];

/**
 * PostgreSQL commits, and the connection breaks before it can say so: once for each step of the path. Nobody may take that for
 * a roll-back, or for a success: each step is read again by its key.
 */
export const lostCommitAck: Drill = {
  name: 'lost-commit-ack',
  fault: 'the network breaks after COMMIT and before its answer, once in open, claim, slice, close and record each',
  guard: 'an error on COMMIT is an unknown that is read again by key: a slice that is done is not performed again',
  async run(tools) {
    const stage = await tools.setStage();
    const lost = new Set<Step>();
    const proxy = await startPostgresProxy(stage.databaseUrl, (spoken) => ruling(spoken, lost));
    try {
      return await drill(tools, stage, proxy.url, lost);
    } finally {
      await proxy.close();
    }
  },
};

function ruling({ sql, transaction }: Spoken, lost: Set<Step>): 'pass' | 'lose_answer' {
  if (sql !== 'commit') return 'pass';
  const step = STEPS.find((one) => !lost.has(one) && transaction.some((statement) => statement.includes(LOST[one])));
  if (step === undefined) return 'pass';
  lost.add(step);
  return 'lose_answer';
}

async function drill({ tell }: DrillTools, stage: Stage, url: string, lost: Set<Step>): Promise<readonly Fact[]> {
  const rule = { budget: 2, slicesInFlight: 1 };
  const sample = await importSample(stage, { merchants: 24, months: 1, subjectsPerSlice: 6, rule });
  const { key } = sample;
  await stage.openGateway();
  await stage.start('worker', { DATABASE_URL: url });
  const run = await startRun(stage, sample);
  const end = await keyEnd(stage, key);
  tell(`${key} is ${end}; answers to COMMIT that were lost so far: ${[...lost].join(', ')}`);
  await stage.start('relay', { DATABASE_URL: url });
  if (end === 'done') await delivered(stage, key);
  const facts = await factsOf(stage.db, sample.registry, { key, closing: '' }, stage.journal);
  const runs = await runsOfKey(stage.db, key);
  const attempts = await attemptsOfKey(stage.db, key);
  return [
    fact('answers to COMMIT that were lost', STEPS.join(', '), STEPS.filter((step) => lost.has(step)).join(', ')),
    fact('open: runs of the key, and their decision', 'admitted', runs.map((one) => one.decision).join(', ')),
    fact('open: the run is the one that was asked for', run, runs[0]?.startId ?? 'none'),
    fact('claim and slice: how the attempts ended', 'failed (commit_unknown), done', attempts.map(ending).join(', ')),
    fact('slice: the fences that wrote the slices', '1, 2, 2, 2', await fences(stage, key)),
    fact('close: the key', 'done', end),
    fact('documents', 1, facts.documents),
    fact('transfers in the journal', facts.payable, facts.transfers),
    fact('numbers executed twice', 0, facts.transfersTwice),
    ...Object.entries(facts.ledger).map(([currency, gap]) => fact(`ledger ${currency}`, 0, gap)),
  ];
}

function ending({ outcome, code }: { outcome: string | null; code: string | null }): string {
  return code === null ? String(outcome) : `${outcome} (${code})`;
}

async function fences(stage: Stage, key: string): Promise<string> {
  const { rows } = await stage.db.query<{ fences: string | null }>(
    `select string_agg(fence::text, ', ' order by slice) as fences from onceper.slice where key = $1`,
    [key],
  );
  return rows[0]?.fences ?? 'none';
}
