import { spawnSync } from 'node:child_process';
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { closeSync, existsSync, openSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { runProcess } from '../../src/app/process.ts';
import { startPostgresProxy } from '../../src/drills/tcp-proxy.ts';
import { createWebhookSigner } from '../../src/gateway/webhook-signature.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait.ts';
import { type ErrorDocument, emptyHome } from './command-line.ts';
import { type CommandProcess, startCommand } from './command-process.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database.drop();
});

const ENTRY = path.resolve(import.meta.dirname, '../../bin/onceper.mjs');

test('gateway prints its address once it listens, a relay starts against it, and both exit 0 on SIGTERM', async () => {
  const journal = path.join(emptyHome, `journal-${randomUUID()}.jsonl`);
  const gateway = startCommand(['gateway', '--port', '0', '--journal', journal, '--drop-every', '5', '--json']);
  await waitFor(() => gateway.out(), { what: 'the gateway to print its address' });
  const { url, ...rest } = JSON.parse(gateway.out()) as { url: string; journal: string };
  expect(rest).toMatchObject({ journal });
  expect(existsSync(journal)).toBe(true);
  expect((await fetch(`${url}/v1/transfers?reference=none`)).status).toBe(200);
  expect(await (await fetch(`${url}/control/modes`)).json()).toMatchObject({ every: [{ mode: 'drop_after', n: 5 }] });
  const relay = startCommand(['relay', '--json'], { DATABASE_URL: database.url, ONCEPER_GATEWAY_URL: url });
  await waitFor(() => relay.err().includes('"relay_started"'), { what: 'the relay to start' });
  for (const child of [relay, gateway]) child.process.kill('SIGTERM');
  expect(await Promise.all([relay.ended, gateway.ended])).toEqual([0, 0]);
  expect(JSON.parse(relay.out())).toMatchObject({ process: 'relay', stopped: true, counts: { sent: 0 } });
  expect(gateway.out().trim().split('\n')).toHaveLength(1);
  for (const { err } of [relay, gateway]) {
    const events = err()
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { event: string }).event);
    expect(events.slice(-2)).toEqual(['draining', 'stopped']);
  }
});

test('webhooks prints its address, stores what is signed, refuses what is not, and exits 0 on SIGTERM', async () => {
  const secret = `whsec_${Buffer.alloc(32, 3).toString('base64')}`;
  const given = { DATABASE_URL: database.url, ONCEPER_WEBHOOK_SECRET: secret };
  const webhooks = startCommand(['webhooks', '--port', '0', '--json'], given);
  await waitFor(() => webhooks.out(), { what: 'the endpoint to print its address' });
  const { url } = JSON.parse(webhooks.out()) as { url: string };
  const body = '{"type":"account.updated","data":{}}';
  const headers = { ...createWebhookSigner(secret).sign('msg_1', new Date(), body) };
  expect((await fetch(url, { method: 'POST', body, headers })).status).toBe(204);
  expect((await fetch(url, { method: 'POST', body: `${body} `, headers })).status).toBe(401);
  webhooks.process.kill('SIGTERM');
  expect(await webhooks.ended).toBe(0);
  expect(webhooks.err()).toContain('"webhook_refused"');
  expect(webhooks.err()).not.toContain(secret.slice('whsec_'.length, 20));
});

test('a worker without Temporal says where it looked, in one document, and exits 1', async () => {
  const worker = startCommand(['worker', '--json'], { DATABASE_URL: database.url, TEMPORAL_ADDRESS: '127.0.0.1:1' });
  expect(await worker.ended).toBe(1);
  expect((JSON.parse(worker.out()) as ErrorDocument).error).toMatchObject({
    code: 'temporal_unreachable',
    at: '127.0.0.1:1',
  });
});

function lastEvent({ err }: CommandProcess): unknown {
  return JSON.parse(err().trim().split('\n').at(-1) ?? '');
}

test('a start that waits for a database that never answers ends by itself and names it, whatever process it is', async () => {
  const proxy = await startPostgresProxy(database.url, () => 'hold');
  const tokenKey = path.join(emptyHome, `${randomUUID()}.pem`);
  const given = {
    DATABASE_URL: proxy.url,
    TEMPORAL_ADDRESS: '127.0.0.1:1',
    ONCEPER_START_TIMEOUT: '1s',
    ONCEPER_GATEWAY_URL: 'http://127.0.0.1:1',
    ONCEPER_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 3).toString('base64')}`,
    ONCEPER_TOKEN_KEY: tokenKey,
  };
  const { publicKey } = generateKeyPairSync('ed25519');
  writeFileSync(tokenKey, publicKey.export({ format: 'pem', type: 'spki' }));
  try {
    const lines = [['worker'], ['relay'], ['webhooks', '--port', '0'], ['server', '--listen', '127.0.0.1:0']];
    const started = lines.map((line) => startCommand([...line, '--json'], given));
    for (const [index, child] of started.entries()) {
      expect(await child.ended).toBe(1);
      const { error } = JSON.parse(child.out()) as ErrorDocument;
      expect(error).toMatchObject({ code: 'start_timed_out', at: 'PostgreSQL' });
      expect(error.message).toContain(`the start of the ${lines[index]?.[0]} was not over after 1 s`);
      expect(lastEvent(child)).toMatchObject({ event: 'stopped', code: 1 });
    }
  } finally {
    await proxy.close();
  }
});

test('SIGTERM ends the start of a worker whose Temporal never answers', async () => {
  let asked = 0;
  const mute = createServer((socket) => {
    asked += 1;
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  const { port } = mute.address() as AddressInfo;
  const worker = startCommand(['worker'], { DATABASE_URL: database.url, TEMPORAL_ADDRESS: `127.0.0.1:${port}` });
  await waitFor(() => asked > 0, { what: 'the worker to ask Temporal' });
  worker.process.kill('SIGTERM');
  expect(await worker.ended).toBe(0);
  expect(lastEvent(worker)).toMatchObject({ event: 'stopped', code: 0 });
  mute.close();
});

test('what fails at the end stands in the log, and never before the error that ended the work', async () => {
  const lines: string[] = [];
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(String(line)) > 0);
  const ended = runProcess(loadConfig({ ONCEPER_HOME: emptyHome }), 'worker', async ({ atEnd }) => {
    atEnd('the first', () => undefined);
    atEnd('the second', () => Promise.reject(new Error('held by somebody')));
    await Promise.resolve();
    throw new Error('what it died of');
  });
  await expect(ended).rejects.toThrow('what it died of');
  write.mockRestore();
  const [failed, stopped] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(failed).toMatchObject({ event: 'close_failed', what: 'the second', message: 'held by somebody' });
  expect(stopped).toMatchObject({ event: 'stopped', code: 1 });
});

/** A refusal with a document of its own on standard output. */
const REFUSED = ['show', 'settlement:2026-9', '--json'];

test.each(['stdout', 'stderr'] as const)('a reader of %s that has gone changes no exit code', async (name) => {
  const lines = [REFUSED, REFUSED.slice(0, 2)];
  const children = lines.map((line) => startCommand(line));
  for (const child of children) {
    child.process[name].destroy();
    expect(await child.ended).toBe(2);
    expect(child.out() + child.err()).not.toContain('EPIPE');
  }
});

test.skipIf(!existsSync('/dev/full'))('an answer that a full device refuses is one line, and exit 1', () => {
  const full = openSync('/dev/full', 'w');
  const env = { PATH: process.env['PATH'], ONCEPER_HOME: emptyHome };
  try {
    for (const line of [['token', 'show'], REFUSED, ['--help']]) {
      const ended = spawnSync(process.execPath, [ENTRY, ...line], {
        env,
        stdio: ['ignore', full, 'pipe'],
        encoding: 'utf8',
      });
      expect(ended.stderr).toMatch(/^output_refused: standard output can't be written: [^\n]*ENOSPC[^\n]*\n$/);
      expect(ended.status).toBe(1);
    }
    const quiet = spawnSync(process.execPath, [ENTRY, ...REFUSED.slice(0, 2)], {
      env,
      stdio: ['ignore', 'ignore', full],
    });
    expect(quiet.status).toBe(2);
  } finally {
    closeSync(full);
  }
});
