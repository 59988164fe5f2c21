import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';

const root = join(import.meta.dirname, '../..');
const document = readFileSync(join(root, 'docs/configuration.md'), 'utf8');

/** A variable as the document describes it; the default is null where it is said in words. */
interface Described {
  readonly name: string;
  readonly preset: string | null;
}

function described(markdown: string): Described[] {
  return [...markdown.matchAll(/^\| `([A-Z][A-Z_]+)` \|(?: (.*?) \|)?/gm)].map(([, name = '', preset = '']) => ({
    name,
    preset: /^`([^`]+)`$/.exec(preset)?.[1] ?? null,
  }));
}

/** Every variable that a source takes from the environment by name. */
function read(source: string): string[] {
  const own = source.match(/\bONCEPER_[A-Z_]*[A-Z]\b/g) ?? [];
  const others = [...source.matchAll(/\b(?:environment|env)(?:\['|\.)([A-Z][A-Z_]+)/g)].map(([, name = '']) => name);
  return [...new Set([...own, ...others])].sort();
}

function missingIn(markdown: string, source: string): string[] {
  const names = new Set(described(markdown).map(({ name }) => name));
  return read(source).filter((name) => !names.has(name));
}

function sourcesOf(folder: string): string {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|mjs)$/.test(name))
    .map((name) => readFileSync(join(root, folder, name), 'utf8'))
    .join('\n');
}

const config = ['src/app/config.ts', 'src/app/people-config.ts', 'src/app/delivery-config.ts']
  .map((file) => readFileSync(join(root, file), 'utf8'))
  .join(' ');
const OURS = described(document).filter(({ name }) => name.startsWith('ONCEPER_'));

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'onceper-configuration-'));
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('every variable that is read from the environment is described', () => {
  expect(read(config).length).toBeGreaterThan(12);
  expect(missingIn(document, sourcesOf('src/app') + sourcesOf('bin'))).toEqual([]);
});

test('a variable that is read and not described is found', () => {
  expect(missingIn(document, "ONCEPER_PLANTED: count, environment['PLANTED']")).toEqual(['ONCEPER_PLANTED', 'PLANTED']);
});

test('every variable of ours that is described is one that the configuration knows', () => {
  const known = read(config);
  expect(OURS.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
});

test.each(OURS.flatMap(({ name, preset }) => (preset === null ? [] : [{ name, preset }])))(
  'the default of $name is $preset',
  ({ name, preset }) => {
    const without = loadConfig({ ONCEPER_HOME: home });
    expect(loadConfig({ ONCEPER_HOME: home, [name]: preset })).toEqual(without);
    const words = new Map([
      ['info', 'error'],
      ['http', 'stripe'],
      ['loopback', 'anywhere'],
      ['viewer,operator,approver', 'viewer'],
    ]);
    const other = /^\d/.test(preset) ? preset.replace(/^\d+/, '7') : (words.get(preset) ?? `other-${preset}`);
    expect(loadConfig({ ONCEPER_HOME: home, [name]: other })).not.toEqual(without);
  },
);
