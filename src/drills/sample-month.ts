import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageFolder } from '../embedded/project-folder.ts';
import { createRegistry, type Registry } from '../jobs/registry.ts';
import { parseRule } from '../jobs/rule.ts';
import { importFile } from '../jobs/settlement/import/import-file.ts';
import { sampleMonths } from '../jobs/settlement/sample/sample-rows.ts';
import { writeSample } from '../jobs/settlement/sample/write-sample.ts';
import { createSettlementJob } from '../jobs/settlement/settlement.ts';
import { businessKey } from '../kernel/key.ts';
import { periodContaining, previousPeriod } from '../kernel/period.ts';
import { auditImportBy } from '../ops/import-audit.ts';
import { clockOf, connect } from '../store/database.ts';
import { loadFirstRule } from '../store/rules.ts';
import type { Stage } from './stage.ts';

/** Generated months in a stage's ledger, ready to be settled. */
export interface SampleMonths {
  readonly registry: Registry;
  readonly months: readonly string[];
  /** The last of them, which has ended, and its key. */
  readonly last: string;
  readonly key: string;
}

/** What is imported: `rule` changes fields of the committed rule, `last` names another last month than the last that ended. */
export interface SampleOptions {
  readonly merchants: number;
  readonly months: number;
  readonly subjectsPerSlice: number;
  readonly rule?: Readonly<Record<string, unknown>>;
  readonly last?: string;
}

/**
 * Loads the settlement rule from the first sample month on and imports a generated sample of so many merchants and months,
 * ending with the last month that has ended by the database's clock where none is named.
 */
export async function importSample(
  stage: Pick<Stage, 'db' | 'actor' | 'folder'>,
  sample: SampleOptions,
): Promise<SampleMonths> {
  const body = JSON.parse(readFileSync(join(packageFolder(), 'rules/settlement.json'), 'utf8')) as Record<
    string,
    unknown
  >;
  const { zone } = parseRule({ ...body, ...sample.rule }, 'rules/settlement.json');
  const calendar = { kind: 'month', zone } as const;
  const last = sample.last ?? previousPeriod(periodContaining(await clockOf(stage.db), calendar), calendar);
  const months = sampleMonths(last, sample.months);
  const changed = { ...body, ...sample.rule, first: months[0], subjectsPerSlice: sample.subjectsPerSlice };
  await loadFirstRule(stage.db, { job: 'settlement', body: changed, loadedBy: stage.actor });
  const file = join(stage.folder, 'sample.csv');
  await writeSample(file, { months, merchants: sample.merchants, seed: 20_260_901 });
  const rule = parseRule(changed, 'the drill');
  const imported = await importFile({
    connect: () => connect(stage.db),
    file,
    source: 'generic',
    actor: stage.actor,
    rule,
    audit: auditImportBy(stage.actor),
  });
  if (imported.refused.length > 0) throw new Error(`the sample was refused: ${imported.refused[0]?.reason}`);
  return { registry: createRegistry([createSettlementJob()]), months, last, key: businessKey('settlement', last) };
}
