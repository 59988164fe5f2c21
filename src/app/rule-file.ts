import { join } from 'node:path';
import { packageFolder } from '../embedded/project-folder.ts';
import type { Registry } from '../jobs/registry.ts';
import { type CheckedRule, checkRule, type LoadedRule } from '../ops/rule.ts';
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

/** Tells a person that the calendar of a rule leaves periods to be caught up. */
export function unclosedText(job: string, { count, first }: NonNullable<LoadedRule['unclosed']>): string {
  const which =
    count === 1
      ? `${first} of the next two years is closed by no firing`
      : `${count} periods of the next two years, ${first} first, are closed by no firing`;
  return `${which} of its calendar, and caught up at their end: npx onceper schedule preview ${job}`;
}
