import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** A planted file and the import in it that the table forbids. */
const FORBIDDEN: readonly (readonly [string, string])[] = [
  ['src/kernel/planted.ts', `import { x } from '../store/database.ts';`],
  ['src/kernel/planted.ts', `import { x } from 'node:crypto';`],
  ['src/kernel/planted.ts', `import { x } from 'pg';`],
  ['src/store/planted.ts', `import { x } from '../jobs/job.ts';`],
  ['src/store/planted.ts', `import { x } from '@temporalio/client';`],
  ['src/jobs/planted.ts', `import { x } from '../store/database.ts';`],
  ['src/jobs/settlement/planted.ts', `import { x } from '../../store/database.ts';`],
  ['src/gateway/planted.ts', `import { x } from '../relay/relay.ts';`],
  ['src/observability/planted.ts', `import { x } from '../store/database.ts';`],
  ['src/embedded/planted.ts', `import { x } from '../app/config.ts';`],
  ['src/relay/planted.ts', `import { x } from '../ops/show.ts';`],
  ['src/relay/planted.ts', `import { x } from '@temporalio/client';`],
  ['src/ops/planted.ts', `import { x } from '../gateway/http.ts';`],
  ['src/ops/planted.ts', `import { Client } from '@temporalio/client';`],
  ['src/ops/planted.ts', `import { x } from '../relay/relay.ts';`],
  ['src/drills/planted.ts', `import { x } from '../app/config.ts';`],
  ['src/store/planted.ts', `import { x } from '../app/config.ts';`],
  ['activities/planted.ts', `import { x } from '../src/ops/show.ts';`],
  ['activities/planted.ts', `import { x } from '../workflows/tick.ts';`],
  ['workflows/planted.ts', `import { x } from '../src/store/open.ts';`],
  ['workflows/planted.ts', `import { createActivities } from '../activities/index.ts';`],
  ['workflows/planted.ts', `import { x } from 'node:fs';`],
  ['test/long/storm/checker/planted.ts', `import { x } from '../../../../src/kernel/money.ts';`],
  ['test/long/storm/checker/planted.ts', `import { x } from '../load.ts';`],
  ['test/long/storm/checker/planted.ts', `import { x } from '@temporalio/client';`],
  ['test/long/storm/checker/planted.ts', `import { x } from 'canonicalize';`],
  ['test/long/storm/checker/planted.ts', `import { x } from 'pg-copy-streams';`],
];

const ALLOWED: readonly (readonly [string, string])[] = [
  ['src/ops/planted.ts', `import type { Gateway } from '../gateway/port.ts';`],
  ['src/ops/planted.ts', `import type { Client } from '@temporalio/client';`],
  ['workflows/planted.ts', `import type { Activities } from '../activities/index.ts';`],
  ['workflows/planted.ts', `import { mayBecome } from '../src/kernel/transitions.ts';`],
  ['src/relay/planted.ts', `import { x } from '../gateway/http.ts';`],
  ['src/app/planted.ts', `import { x } from '../drills/all.ts';`],
  ['test/long/storm/checker/planted.ts', `import { x } from './verdict.ts';`],
  ['test/long/storm/checker/planted.ts', `import pg from 'pg';`],
  ['test/long/storm/checker/planted.ts', `import { x } from 'node:crypto';`],
];

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'onceper-imports-'));
  cpSync(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function lint(file: string, line: string): string {
  const path = join(folder, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${line}\n`);
  const run = spawnSync(join(root, 'node_modules/.bin/oxlint'), [file], { cwd: folder, encoding: 'utf8' });
  rmSync(path);
  return run.stdout;
}

test.each(FORBIDDEN)('%s may not say %s', (file, line) => {
  expect(lint(file, line)).toContain('no-restricted-imports');
});

test.each(ALLOWED)('%s may say %s', (file, line) => {
  expect(lint(file, line)).not.toContain('no-restricted-imports');
});

function sources(path: string): string[] {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    const full = join(path, entry.name);
    return entry.isDirectory() ? sources(full) : full.endsWith('.ts') ? [full] : [];
  });
}

test('SQL of schema onceper stands in src/store only, and a job writes no schema but its own', () => {
  const writes = /\b(insert into|update|delete from)\s+onceper\./i;
  const outside = [
    ...sources(join(root, 'src')),
    ...sources(join(root, 'workflows')),
    ...sources(join(root, 'activities')),
  ]
    .filter((file) => !relative(root, file).startsWith('src/store/'))
    // A drill plays the hand that types what the constraints must refuse.
    .filter((file) => !relative(root, file).startsWith('src/drills/'))
    .filter((file) => writes.test(readFileSync(file, 'utf8')));
  expect(outside.map((file) => relative(root, file))).toEqual([]);
});

test('no statement judges time by now(), which stands still while a transaction waits', () => {
  const files = [...sources(join(root, 'src/store')), ...sources(join(root, 'src/jobs'))];
  const judged = files.filter((file) =>
    /(?<!performance\.)\bnow\(\)|\b(current_timestamp|transaction_timestamp\(\))/i.test(
      readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, ''),
    ),
  );
  expect(judged.map((file) => relative(root, file))).toEqual([]);
});

test('no column is a timestamp without a zone', () => {
  const folderOfSql = join(root, 'migrations');
  const bad = readdirSync(folderOfSql).filter((file) =>
    /\btimestamp\b(?! with time zone)/i.test(readFileSync(join(folderOfSql, file), 'utf8').replace(/--.*/g, '')),
  );
  expect(bad).toEqual([]);
});
