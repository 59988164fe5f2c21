import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { EXIT_OF_ERROR, exitCodeOfError, exitCodeOfRun } from '../../src/app/exit-codes.ts';
import { packageFolder } from '../../src/embedded/project-folder.ts';
import type { ActionState, Decision } from '../../src/kernel/transitions.ts';

describe('the exit code of an error', () => {
  test.each([
    ['usage', 2],
    ['bad_configuration', 2],
    ['malformed_period', 2],
    ['malformed_key', 2],
    ['malformed_instant', 2],
    ['malformed_rule', 2],
    ['unknown_job', 2],
    ['unknown_key', 2],
    ['unknown_source', 2],
    ['file_unreadable', 2],
    ['not_ended', 3],
    ['before_first', 3],
    ['override_conflict', 4],
    ['rule_differs', 4],
    ['database_unset', 1],
    ['database_unreachable', 1],
    ['temporal_unreachable', 1],
    ['something nobody thought of', 1],
  ])('%s is %i', (code, exit) => {
    expect(exitCodeOfError(code)).toBe(exit);
  });

  test('stands only for codes that some source really throws or stores', () => {
    const sources = readdirSync(path.join(packageFolder(), 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('exit-codes.ts'))
      .map((file) => readFileSync(path.join(packageFolder(), 'src', file), 'utf8'))
      .join('\n');
    const unknown = Object.keys(EXIT_OF_ERROR).filter((code) => !sources.includes(`'${code}'`));
    expect(unknown).toEqual([]);
  });
});

describe('the exit code of a run', () => {
  const cases: readonly (readonly [Decision | null, ActionState | null, number])[] = [
    [null, null, 5],
    ['refused', null, 3],
    ['held', null, 3],
    ['conflict', 'done', 4],
    ['duplicate', 'done', 0],
    ['admitted', null, 5],
    ['in_progress', null, 5],
    ['deferred', null, 5],
    ['admitted', 'done', 0],
    ['in_progress', 'done', 0],
    ['admitted', 'running', 5],
    ['admitted', 'exhausted', 6],
    ['deferred', 'cancelled', 6],
    ['in_progress', 'skipped', 3],
  ];
  test.each(cases)('decided %s, and its key seen as %s, is %i', (decision, state, exit) => {
    expect(exitCodeOfRun(decision, state)).toBe(exit);
  });
});
