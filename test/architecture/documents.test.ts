import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { birminghamCards } from '../../src/jobs/settlement/import/birmingham-cards.ts';
import { generic } from '../../src/jobs/settlement/import/generic.ts';

const root = join(import.meta.dirname, '../..');
const DOCUMENTS = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(root, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
];

function textOf(document: string): string {
  return readFileSync(join(root, document), 'utf8');
}

/** Links to files, and the anchors in them, that lead nowhere. */
function brokenLinks(document: string, text: string): string[] {
  return [...text.matchAll(/\]\((?!https?:)([^)]+)\)/g)].flatMap(([, link = '']) => {
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? join(root, document) : join(root, dirname(document), file);
    if (!existsSync(target)) return [link];
    return anchor === undefined || anchorsOf(readFileSync(target, 'utf8')).includes(anchor) ? [] : [link];
  });
}

function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** Files of this repository that a text names in backquotes, and that are not there. Braces stand for several. */
function absentFiles(text: string): string[] {
  const paths = [...text.matchAll(/`((?:src|test|docs|migrations|workflows|activities|rules|bin|\.ci)\/[^`\s]*)`/g)];
  return paths
    .map(([, path = '']) => path)
    .filter((path) => !/[*<…]|[A-Z]{2,}/.test(path))
    .flatMap(expanded)
    .filter((path) => !existsSync(join(root, path)));
}

function expanded(path: string): string[] {
  const [whole = '', parts = ''] = /\{([^}]+)\}/.exec(path) ?? [];
  return whole === '' ? [path] : parts.split(',').map((part) => path.replace(whole, part.trim()));
}

/** Commands of ours that a text tells people to type, and that do not exist. */
function unknownCommands(text: string): string[] {
  const nouns = new Set(readdirSync(join(root, 'src/app/commands')).map((name) => name.replace(/\.ts$/, '')));
  return [...text.matchAll(/\bnpx onceper ([a-z]+)/g)].map(([, noun = '']) => noun).filter((noun) => !nouns.has(noun));
}

/** Scripts of package.json that a text tells people to run, and that do not exist. */
function unknownScripts(text: string): string[] {
  const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
  return [...text.matchAll(/\bnpm run (?:-s )?([a-z:]+)/g)]
    .map(([, name = '']) => name)
    .filter((name) => scripts[name] === undefined);
}

test.each(DOCUMENTS)('%s leads to files, commands and scripts that exist', (document) => {
  const text = textOf(document);
  const found = [
    ...brokenLinks(document, text),
    ...absentFiles(text),
    ...unknownCommands(text),
    ...unknownScripts(text),
  ];
  expect(found).toEqual([]);
});

test('a link, a file, a command and a script that do not exist are found', () => {
  expect(brokenLinks('README.md', '[a](docs/planted.md) [b](docs/rules.md#planted) [c](docs/rules.md#rules)')).toEqual([
    'docs/planted.md',
    'docs/rules.md#planted',
  ]);
  expect(absentFiles('`src/planted.ts` and `src/store/{open,planted}.ts`')).toEqual([
    'src/planted.ts',
    'src/store/planted.ts',
  ]);
  expect(unknownCommands('npx onceper plant settlement')).toEqual(['plant']);
  expect(unknownScripts('npm run -s planted -- --json')).toEqual(['planted']);
});

test.each([generic, birminghamCards])('docs/import.md has the columns of the source $name', (source) => {
  const [, section = ''] = textOf('docs/import.md').split(`## \`${source.name}\`\n`);
  const table = (section.split('\n## ')[0] ?? '').split('\n').filter((line) => line.startsWith('| `'));
  const cells = table.map((line) => line.split('|').map((cell) => cell.trim()));
  const columns = (wanted: (cell: string) => boolean) =>
    cells.filter((row) => wanted(row[2] ?? '')).flatMap((row) => (row[1] ?? '').match(/[A-Za-z][A-Za-z ]*/g) ?? []);
  expect(columns((cell) => cell !== 'optional').sort()).toEqual([...source.required].sort());
  expect(columns((cell) => cell === 'optional').sort()).toEqual([...source.optional].sort());
});
