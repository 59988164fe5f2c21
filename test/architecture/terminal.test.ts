import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

/** Ways to write to standard output or error. */
const WRITES =
  /process\.(stdout|stderr)|\bconsole\.|\bwriteSync\(\s*[12]\b|\bfd:\s*[12]\b|\/dev\/(stdout|stderr|tty)|from 'listr2'|pino\.destination|\['std(out|err)'\]/;

/** Who may, and why. */
const DOORS: Readonly<Record<string, string>> = {
  'src/app/streams.ts': 'the door itself',
  'src/app/io.ts': 'asks whether a person reads',
  'src/app/worker.ts': 'the text of a child that hands its parent the bundle',
  'src/app/demo/perform-steps.ts': 'listr2 draws the progress; what it is told is one line, written out',
  'src/embedded/supervisor.ts': 'its log file, written out',
  'bin/temporal.mjs': 'passes another program through',
};

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|mjs)$/.test(file))
    .map((file) => join(folder, file));
}

test('nothing writes to the terminal but its door, where what others wrote is written out', () => {
  const writers = ['src', 'activities', 'workflows', 'bin']
    .flatMap((folder) => sources(join(root, folder)))
    .filter((file) => WRITES.test(readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')))
    .map((file) => relative(root, file));
  expect(writers.toSorted()).toEqual(Object.keys(DOORS).toSorted());
});

test('a writer beside the door is found', () => {
  for (const planted of [
    "process.stderr.write('x')",
    'console.log(1)',
    'fs.writeSync(2, text)',
    'pino.destination({ fd: 1 })',
  ])
    expect(planted).toMatch(WRITES);
});
