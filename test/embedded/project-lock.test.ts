import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acquireLock } from '../../src/embedded/project-lock.ts';

let folder: string;
let children: ChildProcess[];
beforeEach(() => {
  children = [];
  folder = path.join(mkdtempSync(path.join(tmpdir(), 'onceper-lock-')), 'lock');
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(path.dirname(folder), { recursive: true, force: true });
});

const lockModule = path.resolve(import.meta.dirname, '../../src/embedded/project-lock.ts');

/** A process that waits for a line, then asks for the lock, says what it got, and stays. */
function contender(): { go: () => void; ready: Promise<void>; answer: Promise<string> } {
  const program = `
    import { acquireLock } from ${JSON.stringify(lockModule)};
    process.stdin.once('data', () => {
      console.log(acquireLock(${JSON.stringify(folder)}).kind);
      setInterval(() => {}, 60_000);
    });
    console.log('ready');`;
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', program], {
    stdio: ['pipe', 'pipe', 'inherit'],
    cwd: path.dirname(lockModule),
  });
  children.push(child);
  const said = (word: RegExp): Promise<string> =>
    new Promise((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        const [found] = word.exec(chunk.toString()) ?? [];
        if (found !== undefined) resolve(found);
      });
      child.once('exit', (code) => reject(new Error(`the contender ended with ${code}`)));
    });
  return {
    go: () => child.stdin.write('go\n'),
    ready: said(/ready/).then(() => undefined),
    answer: said(/acquired|held/),
  };
}

test('of several processes that find the lock of a dead one, exactly one gets it', async () => {
  const dead = acquireLock(folder);
  expect(dead.kind).toBe('acquired');
  writeFileSync(path.join(folder, '1'), JSON.stringify({ pid: 1, startedAt: 'before the last boot', released: false }));
  const contenders = Array.from({ length: 5 }, contender);
  const answers = contenders.map((one) => one.answer);
  await Promise.all(contenders.map((one) => one.ready));
  for (const one of contenders) one.go();
  const kinds = await Promise.all(answers);
  expect(kinds.filter((kind) => kind === 'acquired')).toHaveLength(1);
  expect(kinds.filter((kind) => kind === 'held')).toHaveLength(4);
});

test('a lock that is held names its holder, and one that was released can be taken, without leaving old claims behind', () => {
  const first = acquireLock(folder);
  expect(acquireLock(folder)).toMatchObject({ kind: 'held', holder: { pid: process.pid } });
  if (first.kind === 'acquired') first.release();
  expect(acquireLock(folder).kind).toBe('acquired');
  expect(readdirSync(folder)).toHaveLength(1);
});

test('a claim that can’t be read counts as nobody’s', () => {
  expect(acquireLock(folder).kind).toBe('acquired');
  writeFileSync(path.join(folder, '1'), '{ torn');
  expect(acquireLock(folder).kind).toBe('acquired');
});
