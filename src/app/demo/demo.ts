import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DemoFacts, factsOf } from '../../drills/facts.ts';
import type { Stage } from '../../drills/stage.ts';
import { packageFolder } from '../../embedded/project-folder.ts';
import { endedPeriods } from '../../jobs/due.ts';
import type { Registry } from '../../jobs/registry.ts';
import { parseRule } from '../../jobs/rule.ts';
import { periodsWithRows } from '../../jobs/settlement/hold-line.ts';
import { importFile } from '../../jobs/settlement/import/import-file.ts';
import type { Imported } from '../../jobs/settlement/import/imported.ts';
import { sampleMonths } from '../../jobs/settlement/sample/sample-rows.ts';
import { writeSample } from '../../jobs/settlement/sample/write-sample.ts';
import { OnceperError } from '../../kernel/error.ts';
import { businessKey } from '../../kernel/key.ts';
import { auditImportBy } from '../../ops/import-audit.ts';
import { importReport } from '../../ops/import-report.ts';
import { type CheckedRule, checkRule, loadRule } from '../../ops/rule.ts';
import { applyJobSchedule } from '../../ops/schedule.ts';
import { clockOf, connect } from '../../store/database.ts';
import { createJobs } from '../services.ts';
import { type DemoMonths, demoMonths, monthsOf } from './months.ts';
import {
  backfillMonths,
  ownRun,
  removeOneOff,
  scheduleOf,
  startAgain,
  type Tell,
  thirdAttempt,
  untilDelivered,
} from './settle.ts';

/** A named part of the demo; `tell` may be called as it goes on. */
export interface DemoStep {
  readonly title: string;
  readonly run: (tell: Tell) => Promise<void>;
}

/** A file of the user's own instead of the generated sample. */
export interface DemoInput {
  readonly file: string;
  readonly source: string;
}

const SEED = 20_260_901;
const MERCHANTS = 200;
/** Small slices, so that two hundred merchants are settled by several at once. */
const SUBJECTS_PER_SLICE = 20;

/**
 * The steps of the demo on a stage that is set, in order, and the facts to read when they are done. With an input every month
 * of it is settled by backfill; without, the sample's last month is the schedule's own run, through two lost connections.
 */
export function demoSteps(
  stage: Stage,
  input: DemoInput | null,
): { steps: DemoStep[]; facts: () => Promise<DemoFacts> } {
  const registry = createJobs();
  const found: { months?: DemoMonths } = {};
  const months = () => known(found.months);
  const facts = () =>
    factsOf(
      stage.db,
      registry,
      { key: businessKey('settlement', months().last), closing: months().closing },
      stage.journal,
    );
  const prepare: DemoStep[] = [
    {
      title: input === null ? 'generate and import a year of transactions' : `import ${input.file}`,
      run: async (tell) => {
        const now = await clockOf(stage.db);
        const checked = await demoRule(stage, input);
        if (input === null) found.months = demoMonths(checked.rule, now);
        const file = input ?? (await generate(stage, months()));
        tell(inWords(await importIt(stage, checked, file)));
        const ended = await monthsOfFile(stage, checked, now);
        found.months ??= monthsOf(checked.rule, ended);
        // Loaded after the rows are in: the first month of the file is the job's first, or the empty ones before it would wait.
        await loadRule(stage.db, startingAt(checked, months().all[0]), { at: 'the demo', actor: stage.actor });
      },
    },
    {
      title: 'start gateway, worker and relay; apply the schedule',
      run: async (tell) => {
        await stage.startGateway();
        await Promise.all([stage.start('worker'), stage.start('relay')]);
        await applyJobSchedule(stage.db, stage.client, scheduleOf(stage, registry));
        tell(`the gateway's journal is ${stage.journal}`);
      },
    },
  ];
  const settle = input === null ? sampleSteps(stage, registry, months) : inputSteps(stage, months);
  const deliver = { title: 'deliver every payout', run: (tell: Tell) => untilDelivered(stage, tell) };
  return { steps: [...prepare, ...settle, deliver], facts };
}

function sampleSteps(stage: Stage, registry: Registry, months: () => DemoMonths): DemoStep[] {
  let nominal = '';
  return [
    {
      title: 'settle the eleven months before by one backfill',
      run: (tell) => backfillMonths(stage, months().before, months().backfill, tell),
    },
    {
      title: "the schedule's own run of the last month loses its database connection, twice",
      run: async (tell) => {
        nominal = await ownRun(stage, registry, months().last, tell);
      },
    },
    { title: 'the third attempt closes the month', run: () => thirdAttempt(stage, months().last) },
    {
      title: 'start the same month again: backfill, trigger, and onceper run twice at once',
      run: async (tell) => {
        await startAgain(stage, { month: months().last, nominal, byTrigger: true }, tell);
        await removeOneOff(stage, registry);
      },
    },
  ];
}

function inputSteps(stage: Stage, months: () => DemoMonths): DemoStep[] {
  return [
    {
      title: 'settle every month of the file by one backfill',
      run: (tell) => backfillMonths(stage, months().all, { ...months().backfill, to: months().closing }, tell),
    },
    {
      title: 'start the last month again: backfill, and onceper run twice at once',
      run: (tell) => startAgain(stage, { month: months().last, nominal: months().closing, byTrigger: false }, tell),
    },
  ];
}

/** The committed rule of the source; for the sample with the first of its twelve months and smaller slices. */
async function demoRule(stage: Stage, input: DemoInput | null): Promise<CheckedRule> {
  const name = input?.source === 'birmingham-cards' ? 'birmingham' : 'settlement';
  const file = join(packageFolder(), 'rules', `${name}.json`);
  const text = readFileSync(file, 'utf8');
  if (input !== null) return checkRule(createJobs(), text, file);
  const body = JSON.parse(text) as Record<string, unknown>;
  const { all } = demoMonths(parseRule(body, file), await clockOf(stage.db));
  const changed = { ...body, first: all[0], subjectsPerSlice: SUBJECTS_PER_SLICE };
  return checkRule(createJobs(), JSON.stringify(changed), file);
}

function startingAt(checked: CheckedRule, first: string | undefined): CheckedRule {
  const body = { ...(checked.body as Record<string, unknown>), first };
  return checkRule(createJobs(), JSON.stringify(body), 'the demo');
}

async function generate(stage: Stage, months: DemoMonths): Promise<DemoInput> {
  const file = join(stage.folder, 'sample.csv');
  await writeSample(file, { months: sampleMonths(months.last, 12), merchants: MERCHANTS, seed: SEED });
  return { file, source: 'generic' };
}

async function importIt(stage: Stage, checked: CheckedRule, input: DemoInput): Promise<Imported> {
  const imported = await importFile({
    connect: () => connect(stage.db),
    file: input.file,
    source: input.source,
    actor: stage.actor,
    rule: checked.rule,
    audit: auditImportBy(stage.actor),
  });
  if (imported.kind === 'imported') return imported;
  if (imported.kind === 'held') {
    throw new OnceperError({
      code: 'file_held',
      message: importReport(imported).join('; '),
      remedy: 'give the demo a file of which these servers know nothing',
      at: input.file,
    });
  }
  throw new OnceperError({
    code: 'file_refused',
    message: `${imported.refused.length} rows refuse the file, the first in line ${imported.refused[0]?.line}: ${imported.refused[0]?.reason}`,
    remedy: 'correct the file; nothing of it was stored',
    at: input.file,
  });
}

async function monthsOfFile(stage: Stage, checked: CheckedRule, now: string): Promise<string[]> {
  const ended = new Set(endedPeriods(checked.rule, now));
  const withRows = (await periodsWithRows(stage.db)).filter((period) => ended.has(period));
  const [first, last] = [withRows[0], withRows.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [...ended].filter((period) => first <= period && period <= last);
}

function inWords(imported: Imported): string {
  return `${imported.added} of ${imported.rows} rows are new, ${imported.known} known, ${imported.late} late`;
}

function known<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a step of the demo ran before the one that it needs');
  return value;
}
