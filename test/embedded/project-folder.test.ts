import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageFolder, projectFolder } from '../../src/embedded/project-folder.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'onceper-place-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function folder(name: string, ...marks: readonly string[]): string {
  const made = path.join(root, name);
  mkdirSync(made, { recursive: true });
  if (marks.includes('package.json')) writeFileSync(path.join(made, 'package.json'), '{}');
  if (marks.includes('.onceper')) mkdirSync(path.join(made, '.onceper'));
  return made;
}

test('a checkout keeps its own data, wherever a command is typed', () => {
  expect(projectFolder(packageFolder(), root)).toBe(packageFolder());
});

test.each(['node_modules/onceper', 'node_modules/.pnpm/onceper@1/node_modules/onceper'])(
  'installed in %s, the data lie in the project that is typed in, and never where an install erases them',
  (place) => {
    const project = folder('shop', 'package.json');
    const installed = folder(`shop/${place}`, 'package.json');
    const deep = folder('shop/src/deep');
    for (const cwd of [project, deep, installed]) expect(projectFolder(installed, cwd)).toBe(project);
  },
);

test('data that are there go before a nearer package.json, and a folder without either is its own', () => {
  const installed = folder('cache/_npx/1/node_modules/onceper', 'package.json');
  const project = folder('shop', 'package.json', '.onceper');
  expect(projectFolder(installed, folder('shop/packages/a', 'package.json'))).toBe(project);
  expect(projectFolder(installed, folder('elsewhere'))).toBe(path.join(root, 'elsewhere'));
});
