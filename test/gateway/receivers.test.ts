import { createServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Receivers } from '../../src/gateway/port.ts';
import { createReceivers, parseReceiverUrl } from '../../src/gateway/receivers.ts';
import { TEST_SECRET, type Treatment, useTestReceivers } from '../support/receiver.ts';

const NUMBER = 'settlement:2026-09:accounting:XXX:completed';
const BODY = '{"specversion": "1.0", "subject": "Zoë’s €"}';
const OTHER_SECRET = `whsec_${Buffer.from('another secret, and as long as that').toString('base64')}`;
const receiver = useTestReceivers();
const opened: Receivers[] = [];
afterEach(async () => {
  for (const receivers of opened.splice(0)) await receivers.close();
});

function towards(url: string, secrets: readonly string[] = [TEST_SECRET], timeoutMs = 2_000): Receivers {
  const receivers = createReceivers([{ name: 'accounting', url, secrets }], { timeoutMs, networks: ['127.0.0.1'] });
  opened.push(receivers);
  return receivers;
}

const tell = (receivers: Receivers, signal?: AbortSignal) => receivers.send('accounting', NUMBER, BODY, signal);

test('a message carries the number as its id, the time of the try, and a signature over its bytes', async () => {
  const { url, received } = await receiver();
  const began = Math.floor(Date.now() / 1_000);
  expect(await tell(towards(url))).toEqual({ kind: 'acknowledged', status: 204 });
  expect(received).toEqual([
    {
      id: NUMBER,
      timestamp: expect.any(Number) as number,
      contentType: 'application/cloudevents+json; charset=utf-8',
      isGenuine: true,
      body: BODY,
    },
  ]);
  expect(received[0]?.timestamp).toBeGreaterThanOrEqual(began);
});

test('with two secrets a receiver may know the old one or the new one', async () => {
  const [old, fresh] = [await receiver(OTHER_SECRET), await receiver(TEST_SECRET)];
  for (const { url } of [old, fresh]) await tell(towards(url, [TEST_SECRET, OTHER_SECRET]));
  expect([...old.received, ...fresh.received].map(({ isGenuine }) => isGenuine)).toEqual([true, true]);
  await tell(towards(old.url, [TEST_SECRET]));
  expect(old.received.at(-1)?.isGenuine).toBe(false);
});

describe('an answer', () => {
  const treated = async (treatment: Treatment, timeoutMs?: number) => {
    const to = await receiver();
    to.treat(() => treatment);
    return tell(towards(to.url, [TEST_SECRET], timeoutMs));
  };

  test.each([200, 201, 202, 204])('%s is an acknowledgement', async (status) => {
    expect(await treated({ status })).toEqual({ kind: 'acknowledged', status });
  });

  test('2xx is one though its body never ends or breaks off', async () => {
    expect(await treated({ status: 200, body: 'x'.repeat(100_000) })).toEqual({ kind: 'acknowledged', status: 200 });
    expect(await treated({ status: 200, headers: { 'content-length': '10' }, body: 'cut' }, 300)).toEqual({
      kind: 'acknowledged',
      status: 200,
    });
  });

  test('410 says that no more is wanted', async () => {
    expect(await treated({ status: 410 })).toEqual({ kind: 'gone', status: 410 });
  });

  test('429 asks for patience, and 503 may', async () => {
    const headers = { 'retry-after': '120' };
    expect(await treated({ status: 429, headers })).toEqual({ kind: 'busy', retryAfterMs: 120_000, status: 429 });
    const away = { kind: 'unknown', code: 'http_503', status: 503 };
    expect(await treated({ status: 503, headers })).toEqual({ ...away, retryAfterMs: 120_000 });
    expect(await treated({ status: 503 })).toEqual({ ...away, retryAfterMs: 0 });
  });

  test.each([301, 308, 400, 401, 404, 422, 500])(
    '%s proves nothing, and a redirect is not followed',
    async (status) => {
      expect(await treated({ status, headers: { location: '/elsewhere' } })).toMatchObject({
        kind: 'unknown',
        code: `http_${status}`,
        status,
      });
    },
  );

  test('that never comes, or is cut, leaves open whether the message was heard', async () => {
    expect(await treated('hang', 200)).toMatchObject({ kind: 'unknown', code: 'timeout', status: null });
    expect(await treated('drop')).toMatchObject({ kind: 'unknown', status: null });
  });
});

test('a closed port and an unknown name have heard nothing', async () => {
  const to = await receiver();
  await to.stop();
  const receivers = towards(to.url);
  expect(await tell(receivers)).toEqual({ kind: 'unsent', code: 'econnrefused' });
  expect(await receivers.send('archive', NUMBER, BODY)).toEqual({ kind: 'unsent', code: 'receiver_unknown' });
});

test('a call that is cut from outside, or that a listener without a word keeps, ends in its time', async () => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  const receivers = towards(`http://127.0.0.1:${port}/hooks`, [TEST_SECRET], 60_000);
  const cut = new AbortController();
  const told = tell(receivers, cut.signal);
  silent.once('connection', () => cut.abort());
  expect(await told).toMatchObject({ kind: 'unknown', code: 'aborted' });
  silent.close();
});

test('an address is plain http or https, and a secret is one of Standard Webhooks', () => {
  expect(parseReceiverUrl('https://accounting.example/hooks?for=us')?.pathname).toBe('/hooks');
  for (const url of ['ftp://x/', 'https://u:p@x/', 'https://x/#there', 'accounting']) {
    expect(parseReceiverUrl(url)).toBeNull();
    expect(() => towards(url)).toThrow(expect.objectContaining({ code: 'receiver_url', at: 'accounting' }));
  }
  expect(() => towards('https://x/', ['whsec_short'])).toThrow(expect.objectContaining({ code: 'webhook_secret' }));
});
