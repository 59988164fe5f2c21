import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createReceivers } from '../../src/gateway/receivers.ts';
import { TEST_SECRET } from '../support/receiver.ts';
import { waitFor } from '../support/wait.ts';

const root = path.join(import.meta.dirname, '../..');
const guide = /```js\n([\s\S]*?)```/.exec(readFileSync(path.join(root, 'docs/webhooks.md'), 'utf8'))?.[1] ?? '';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('the receiver of the guide verifies what we send, and takes a repeat for one', async () => {
  const port = await freePort();
  const child = spawn(process.execPath, ['--input-type=module', '--eval', guide], {
    cwd: root,
    env: { ...process.env, PORT: String(port), WEBHOOK_SECRET: TEST_SECRET },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (said += text));
  const url = `http://127.0.0.1:${port}/hooks`;
  const other = TEST_SECRET.replace(/.$/, '').concat('A').replace('whsec_YS', 'whsec_ZZ');
  const receivers = createReceivers(
    [
      { name: 'accounting', url, secrets: [TEST_SECRET] },
      { name: 'forger', url, secrets: [other] },
    ],
    { timeoutMs: 5_000, networks: ['127.0.0.1'] },
  );
  const number = 'settlement:2026-09:accounting:XXX:completed';
  const body = JSON.stringify({ id: number, subject: 'settlement:2026-09', data: { document: { id: 'doc-1' } } });
  try {
    await waitFor(() => said.includes('ready'), { what: 'the receiver of the guide' });
    expect(await receivers.send('forger', number, body)).toMatchObject({ kind: 'unknown', status: 401 });
    expect(await receivers.send('accounting', number, body)).toEqual({ kind: 'acknowledged', status: 204 });
    expect(await receivers.send('accounting', number, body)).toEqual({ kind: 'acknowledged', status: 200 });
    await waitFor(() => said.includes('completed'), { what: 'what the receiver says' });
    expect(said.match(/settlement:2026-09 is completed: doc-1/g)).toHaveLength(1);
  } finally {
    await receivers.close();
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});
