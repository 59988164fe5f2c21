import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { mutate } from '../mutants/copy.ts';
import { MUTATIONS } from '../mutants/mutations.ts';

const ROOT = join(import.meta.dirname, '../..');

test('every deliberate bug still has its place in the code, and the tests that must catch it', () => {
  const lost = MUTATIONS.flatMap(({ name, edits, tests }) => {
    const missing = tests.filter((file) => !existsSync(join(ROOT, file)));
    const texts = new Map<string, string>();
    try {
      for (const edit of edits) {
        const text = texts.get(edit.file) ?? readFileSync(join(ROOT, edit.file), 'utf8');
        texts.set(edit.file, mutate(text, edit));
      }
    } catch (error) {
      missing.push(String(error));
    }
    return missing.map((what) => `${name}: ${what}`);
  });
  expect(lost).toEqual([]);
  expect(new Set(MUTATIONS.map(({ name }) => name)).size).toBe(MUTATIONS.length);
});
