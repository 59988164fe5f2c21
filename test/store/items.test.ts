import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';

const root = join(import.meta.dirname, '../..');

/** A program of somebody else's, in a folder of its own that has the package installed. */
const CONSUMER = `
import { once, onceMany, openDatabase, transaction } from 'onceper';
const db = openDatabase({ url: process.argv[2], name: 'consumer', max: 2 });
const work = { steps: {}, result: { known: "request -> 'amount'" } };
const first = await once(db, 'a', { amount: '1' }, work);
const second = await transaction(db, {}, (tx) => once(tx, 'a', { amount: '1' }, work));
const many = await onceMany(db, [{ key: 'a', request: { amount: '2' } }, { key: 'b', request: { amount: '3' } }], work);
console.log(JSON.stringify([first, second, ...many.map(({ kind }) => kind)]));
await db.close();
`;

test('a program that installs the package does items by its public names', async () => {
  const database = await createTestDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'onceper-consumer-'));
  try {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/onceper'), 'dir');
    writeFileSync(join(folder, 'main.mjs'), CONSUMER);
    const { stdout } = await promisify(execFile)(process.execPath, ['main.mjs', database.url], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual([
      { kind: 'done', result: '1' },
      { kind: 'duplicate', result: '1' },
      'conflict',
      'done',
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  }
});
