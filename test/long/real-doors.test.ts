import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { importSample, type SampleMonths } from '../../src/drills/sample-month.ts';
import { type Stage, setStage } from '../../src/drills/stage.ts';
import { typed } from '../../src/drills/typed.ts';
import { nominalTimeOf } from '../../src/jobs/occasion.ts';
import { parseRule } from '../../src/jobs/rule.ts';
import { countDocuments } from '../../src/jobs/settlement/hold-line.ts';
import { businessKey } from '../../src/kernel/key.ts';
import { backfillCommand } from '../../src/ops/commands.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { activeRule } from '../../src/store/rules.ts';
import { runsOfKey } from '../../src/store/runs.ts';
import { waitFor } from '../support/wait.ts';

const ROUNDS = 5;
const folder = mkdtempSync(join(tmpdir(), 'onceper-doors-'));
let stage: Stage;
let sample: SampleMonths;

beforeAll(async () => {
  stage = await setStage({
    folder: join(folder, 'stage'),
    databaseUrl: null,
    temporalAddress: null,
    temporalCli: { explicit: inject('temporalCli'), path: process.env['PATH'] ?? '', cacheDir: folder },
    environment: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? folder },
    taskQueue: 'onceper',
    actor: 'os:test',
  });
  sample = await importSample(stage, { merchants: 60, months: ROUNDS, subjectsPerSlice: 10 });
  await stage.startGateway();
  await Promise.all([stage.start('worker'), stage.start('worker'), stage.start('relay')]);
  await typed('npx onceper schedule apply settlement', stage.environment);
}, 180_000);
afterAll(async () => {
  await stage.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

test(`of fifty starts of a month through five doors by real processes one is admitted, ${ROUNDS} of ${ROUNDS}`, async () => {
  const stored = await activeRule(stage.db, 'settlement');
  const rule = parseRule(stored?.body, 'the test');
  for (const month of sample.months) {
    const key = businessKey('settlement', month);
    const nominal = nominalTimeOf(rule, month);
    const schedule = stage.client.schedule.getHandle('settlement');
    const at = new Date(nominal);
    const tick = (door: 'run' | 'backfill', scheduledAt: string) => {
      const id = randomUUID();
      const start = { id, door, scheduledAt, actor: 'os:test', overrides: {} };
      return stage.client.workflow.start('tick', {
        workflowId: `tick-${id}`,
        taskQueue: 'onceper',
        args: [{ job: 'settlement', start }],
      });
    };
    const later = new Date(at.getTime() + 3_600_000).toISOString();
    await Promise.all([
      typed(backfillCommand('settlement', nominal, nominal), stage.environment),
      ...Array.from({ length: 5 }, () =>
        typed(`npx onceper run settlement --period ${month}`, stage.environment, [0, 5]),
      ),
      schedule.backfill({ start: at, end: at, overlap: 'ALLOW_ALL' }),
      ...Array.from({ length: 15 }, () => tick('run', nominal)),
      ...Array.from({ length: 14 }, () => tick('backfill', nominal)),
      ...Array.from({ length: 14 }, () => tick('run', later)),
    ]);
    await waitFor(async () => (await actionByKey(stage.db, key))?.state === 'done', { what: key, timeoutMs: 60_000 });
    const runs = await waitFor(
      async () => {
        const all = await runsOfKey(stage.db, key);
        return all.length >= 49 && all.every((run) => run.decision !== 'deferred') ? all : null;
      },
      { what: `the runs of ${key}`, timeoutMs: 60_000 },
    );
    const decisions = runs.map((run) => run.decision);
    expect(decisions.filter((decision) => decision === 'admitted')).toHaveLength(1);
    expect(decisions.every((decision) => ['admitted', 'duplicate', 'in_progress'].includes(decision))).toBe(true);
    expect(await countDocuments(stage.db, key)).toBe(1);
    process.stderr.write(
      `${key}: ${runs.length} runs, 1 admitted, ${decisions.filter((one) => one === 'duplicate').length} duplicates\n`,
    );
  }
}, 600_000);
