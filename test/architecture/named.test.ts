import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { createProgram } from '../../src/app/cli.ts';

const root = join(import.meta.dirname, '../..');
const quiet = { out: () => undefined, err: () => undefined };
const program = createProgram(quiet, () => () => Promise.resolve());

/** What people read or type from: code with its remedies, SQL, documents. Tests plant faults on purpose. */
const FILES = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => /\.(ts|mjs|sql|md|json|example|yml)$/.test(file) && !/^(test|package-lock)/.test(file));

/** Command lines of ours in a text, each as the words up to whatever ends it: a quote, a comment, a sentence. */
function commandLines(text: string): string[][] {
  const lines = [...text.matchAll(/\bnpx onceper ((?:[^\s`'"<|#;,()]+ ?)+)/g)];
  return lines.map(([, words = '']) => words.trim().split(' '));
}

/** What a command line names and the program does not know: a command, a verb, an option. */
function unknownIn(words: readonly string[]): string[] {
  let command: Command = program;
  let at = 0;
  for (; at < words.length; at += 1) {
    const next = command.commands.find((child) => child.name() === words[at]);
    if (next === undefined) break;
    command = next;
  }
  const isWord = /^[a-z]+$/.test(words[at] ?? '');
  if (at === 0) return isWord ? [words.join(' ')] : [];
  if (command.commands.length > 0 && isWord && !PROSE.has(words[at] ?? '')) return [words.join(' ')];
  // Where the code chooses the verb, an option of any of them will do.
  const meant = words[at]?.startsWith('${') === true && command.commands.length > 0 ? command.commands : [command];
  const options = new Set([...meant.flatMap((one) => one.options.map(({ long }) => long)), '--help']);
  return words
    .map((word) => /^--[a-z-]+/.exec(word)?.[0])
    .filter((option) => option !== undefined && !options.has(option))
    .map((option) => `${words.slice(0, at).join(' ')} ${String(option)}`);
}

/** Words of a sentence that goes on after a noun typed alone. */
const PROSE: ReadonlySet<string> = new Set(['and', 'has', 'shows', 'to']);

/** Documents that a text names and that are not there. */
function absentDocuments(text: string): string[] {
  return [...text.matchAll(/\bdocs\/[a-z-]+\.md\b/g)]
    .map(([path]) => path)
    .filter((path) => !existsSync(join(root, path)));
}

/** References to sections of a document that no reader has. */
function sectionSigns(text: string): string[] {
  return [...text.matchAll(/.{0,20}\u00a7.{0,10}/g)].map(([found]) => found);
}

test('whatever code, SQL and documents tell people to type or to read exists, with each of its options', () => {
  const found = FILES.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const unknown = commandLines(text).flatMap(unknownIn);
    return [...unknown, ...absentDocuments(text), ...sectionSigns(text)].map((what) => `${file}: ${what}`);
  });
  expect(FILES.length).toBeGreaterThan(300);
  expect(found).toEqual([]);
});

test('a command, a verb, an option, a document and a section that nobody has are found', () => {
  const lines = commandLines(
    '`npx onceper plant x`, npx onceper schedule grow JOB; npx onceper schedule apply --rule FILE.',
  );
  expect(lines.flatMap(unknownIn)).toEqual(['plant x', 'schedule grow JOB', 'schedule apply --rule']);
  expect(absentDocuments('docs/rules.md and docs/planted.md')).toEqual(['docs/planted.md']);
  expect(sectionSigns('as in \u00a74')).toHaveLength(1);
});
