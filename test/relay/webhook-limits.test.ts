import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { useTestLedger } from '../support/ledger-rows.ts';
import { waitFor } from '../support/wait.ts';
import { messageOf, sentEffect, useTestEndpoint } from './webhook-endpoint.ts';

const ledger = useTestLedger();
const endpoint = useTestEndpoint(ledger);
const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

/** A bare connection to the endpoint, which the other side may end and reset. */
async function connected(): Promise<Socket> {
  const socket = connect(endpoint.server.port, '127.0.0.1').on('error', () => undefined);
  sockets.push(socket);
  await once(socket, 'connect');
  return socket;
}

/** Resolves when the other side has closed; the bytes that it said before. */
async function untilClosed(socket: Socket): Promise<string> {
  let said = '';
  socket.on('data', (part: Buffer) => (said += part.toString()));
  // Not `once`, which a reset would make reject.
  if (!socket.closed) await new Promise((resolve) => socket.on('close', resolve));
  return said;
}

const HEAD = 'POST /webhooks HTTP/1.1\r\nhost: here\r\n';

test('a body without an end is cut while it arrives, and nothing of it is kept', async () => {
  const socket = await connected();
  const closed = untilClosed(socket);
  const part = Buffer.alloc(64 * 1_024, 'x');
  const chunk = Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
  socket.write(`${HEAD}transfer-encoding: chunked\r\n\r\n`);
  let sent = 0;
  const pour = () => {
    while (!socket.destroyed && sent < 2 ** 30) {
      sent += part.length;
      if (!socket.write(chunk)) return;
    }
  };
  socket.on('drain', pour);
  pour();
  await closed;
  // What lay in the buffers of two sockets between us and it, and no more.
  expect(sent).toBeLessThan(32 * 1_024 * 1_024);
  expect(endpoint.events).toMatchObject([{ kind: 'refused', status: 413 }]);
  expect(await endpoint.states()).toEqual([]);
});

test('a body that says beforehand that it is 1 GB long is not waited for', async () => {
  const socket = await connected();
  const closed = untilClosed(socket);
  socket.write(`${HEAD}content-length: ${2 ** 30}\r\n\r\n`);
  expect(await closed).toMatch(/^HTTP\/1\.1 413 [\s\S]*connection: close/i);
});

test('a connection that says nothing, or never finishes what it says, is closed', async () => {
  await endpoint.start({}, { headersMs: 100, requestMs: 200, checkMs: 20 });
  const [silent, inHeaders, inBody] = [await connected(), await connected(), await connected()];
  inHeaders.write(HEAD);
  inBody.write(`${HEAD}content-length: 10\r\n\r\n{`);
  await Promise.all([silent, inHeaders, inBody].map(untilClosed));
  expect(await endpoint.states()).toEqual([]);
});

test('connections beyond the limit are closed unheard, which is told, and the others are served', async () => {
  await endpoint.start({}, { connections: 2 });
  const [first] = [await connected(), await connected()];
  const third = await connected();
  await untilClosed(third);
  await waitFor(() => endpoint.events.some((event) => event.kind === 'refused' && event.status === 503), {
    what: 'the refusal to be told',
  });
  first.destroy();
  const number = await sentEffect(ledger, endpoint.key);
  const post = () => endpoint.post(messageOf(number, 'succeeded')).catch(() => null);
  await waitFor(async () => (await post()) === 204, { what: 'a message to be taken' });
});
