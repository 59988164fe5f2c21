import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { drainOnSignal } from '../../src/app/drain.ts';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'onceper-drain-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('leaves a channel alone that belongs to whoever runs this process', () => {
  const listeners = process.listenerCount('disconnect');
  const channel = process.channel as unknown as { hasRef?: () => boolean } | undefined;
  const held = channel?.hasRef?.();
  drainOnSignal(() => undefined, 0);
  expect(process.listenerCount('disconnect')).toBe(listeners);
  expect(channel?.hasRef?.()).toBe(held);
});

test('a process of the product that was forked ends when its parent lets go of it', async () => {
  const child = fork(
    join(root, 'bin/onceper.mjs'),
    ['gateway', '--port', '0', '--journal', join(folder, 'journal.jsonl')],
    {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '' },
    },
  );
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  await new Promise<void>((resolve) => {
    let said = '';
    child.stderr?.on('data', (text: Buffer) => {
      said += text.toString();
      if (said.includes('gateway_started')) resolve();
    });
  });
  child.disconnect();
  expect(await ended).toBe(0);
});
