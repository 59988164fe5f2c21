import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');

/** Runs vitest with our reporter over these files, and gives the last line it printed and its exit code. */
function lastLineOf(files: Record<string, string>): { line: string | undefined; code: number | null } {
  const dir = mkdtempSync(path.join(tmpdir(), 'onceper-vitest-'));
  try {
    const reporter = JSON.stringify(path.join(root, 'test/support/closing-line.ts'));
    writeFileSync(
      path.join(dir, 'vitest.config.ts'),
      `import { ClosingLine } from ${reporter};
       export default { test: { globals: true, reporters: ['default', new ClosingLine()] } };`,
    );
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(dir, name), text);
    const ran = spawnSync(path.join(root, 'node_modules/.bin/vitest'), ['run', '--root', dir], { encoding: 'utf8' });
    return { line: ran.stdout.trimEnd().split('\n').at(-1), code: ran.status };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

test('the closing line counts passed, failed and skipped tests of all files', () => {
  const { line, code } = lastLineOf({
    'one.test.ts': `test('a', () => {}); test.skip('b', () => {}); test.todo('c');`,
    'two.test.ts': `test('d', () => {}); test('e', () => { throw new Error('no'); });`,
  });
  expect(line).toBe('2 passed, 1 failed, 2 skipped');
  expect(code).toBe(1);
});

test('a file that can’t load, a hook that fails and an error nobody handled are failures, though no test failed', () => {
  expect(lastLineOf({ 'one.test.ts': `test('a', () => {}); throw new Error('no');` }).line).toBe(
    '0 passed, 1 failed, 0 skipped',
  );
  const others = lastLineOf({
    'one.test.ts': `test('a', () => {}); afterAll(() => { throw new Error('no'); });`,
    'two.test.ts': `test('b', () => { void Promise.reject(new Error('nobody')); });`,
  });
  expect(others).toEqual({ line: '2 passed, 2 failed, 0 skipped', code: 1 });
});
