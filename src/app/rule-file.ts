import { join } from 'node:path';
import { packageFolder } from '../embedded/project-folder.ts';
import type { Registry } from '../jobs/registry.ts';
import { type CheckedRule, checkRule } from '../ops/rule.ts';
import { readTextFile } from './options.ts';

/** The rule that `up` loads unless told otherwise. */
const DEFAULT_RULES = join('rules', 'settlement.json');

/** Reads and checks a rule file before anything is started for it; without a file, the committed default. */
export function readRuleFile(
  registry: Registry,
  file: string | undefined,
): { readonly at: string; readonly checked: CheckedRule } {
  const at = file ?? DEFAULT_RULES;
  return { at, checked: checkRule(registry, readTextFile(file ?? join(packageFolder(), DEFAULT_RULES)), at) };
}
