import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { isNetwork, networksWith } from '../../src/gateway/networks.ts';
import type { Receivers } from '../../src/gateway/port.ts';
import { createReceivers, type ReceiverOptions } from '../../src/gateway/receivers.ts';
import { TEST_SECRET } from '../support/receiver.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** A server on every address of this machine that counts connections and closes each after its answer. */
async function machine(answer: { readonly status: number; readonly location?: string } = { status: 204 }) {
  const seen = { connections: 0, requests: 0 };
  const server = createServer((_request, response) => {
    seen.requests += 1;
    const { status, ...headers } = answer;
    response.writeHead(status, { connection: 'close', ...headers }).end();
  });
  server.on('connection', () => (seen.connections += 1));
  await once(server.listen(0, '0.0.0.0'), 'listening');
  closing.push(() => {
    server.closeAllConnections();
    server.close();
    return once(server, 'close');
  });
  return { port: (server.address() as AddressInfo).port, seen };
}

function telling(url: string, options: Partial<ReceiverOptions> = {}): () => ReturnType<Receivers['send']> {
  const receivers = createReceivers([{ name: 'accounting', url, secrets: [TEST_SECRET] }], {
    timeoutMs: 2_000,
    ...options,
  });
  closing.push(() => receivers.close());
  return () => receivers.send('accounting', 'n', '{}');
}

/** Resolves any name to these addresses, one list after the other. */
function answering(...lists: readonly (readonly string[])[]): LookupFunction {
  let asked = 0;
  return (_hostname, options, callback) => {
    const list = lists[Math.min(asked, lists.length - 1)] ?? [];
    asked += 1;
    if (options.all === true)
      callback(
        null,
        list.map((address) => ({ address, family: 4 })),
      );
    else callback(null, list[0] ?? '', 4);
  };
}

const REFUSED = { kind: 'unsent', code: 'address_refused' };

describe('an internal address is refused', () => {
  test.each([
    ['10.1.2.3', '172.31.0.1', '192.168.0.1', '100.64.0.1'],
    ['127.0.0.1', '127.9.9.9', '0.0.0.0', '::1', '::'],
    ['169.254.169.254', '100.100.100.200', '192.0.0.192', '168.63.129.16', 'fd00:ec2::254'],
    ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fec0::1', 'ff02::1', '224.0.0.1', '255.255.255.255'],
    ['::ffff:127.0.0.1', '::ffff:7f00:1', '64:ff9b::a9fe:a9fe', '2002:7f00:1::', '[::1]'],
  ])('%s, %s and their like', (...addresses) => {
    const { refuse } = networksWith([]);
    expect(addresses.filter((address) => refuse(address) === null)).toEqual([]);
  });

  test('unless it lies in a network that is allowed, and no other one with it', () => {
    const { refuse } = networksWith(['10.20.0.0/16', '127.0.0.1', 'fd12::/16']);
    for (const address of ['10.20.255.1', '127.0.0.1', '::ffff:10.20.0.1', 'fd12::7'])
      expect(refuse(address)).toBeNull();
    for (const address of ['10.21.0.1', '127.0.0.2', 'fd13::7']) expect(refuse(address)).not.toBeNull();
  });

  test('and any address of the outside is not', () => {
    const { refuse } = networksWith([]);
    for (const address of ['8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '::ffff:8.8.8.8']) {
      expect(refuse(address), address).toBeNull();
    }
  });
});

test('a network is an address or address/bits', () => {
  for (const text of ['10.0.0.0/8', '127.0.0.1', '::1', 'fd00::/8']) expect(isNetwork(text)).toBe(true);
  for (const text of ['10.0.0.0/33', 'localhost', '10.0.0/8', '::1/129', '1.2.3.4/', 'fe80::1%lo']) {
    expect(isNetwork(text), text).toBe(false);
  }
});

test.each(['127.0.0.1', '[::1]', '169.254.169.254', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]'])(
  'a receiver at %s stops the start',
  (host) => {
    expect(() => telling(`http://${host}:8300/hooks`)).toThrow(expect.objectContaining({ code: 'receiver_address' }));
  },
);

test('a name that leads to this machine is refused, and nobody is connected to', async () => {
  const { port, seen } = await machine();
  expect(await telling(`http://localhost:${port}/`)()).toEqual(REFUSED);
  expect(await telling(`http://inside.example:${port}/`, { resolve: answering(['127.0.0.1']) })()).toEqual(REFUSED);
  expect(seen.connections).toBe(0);
});

test('a name of which one address is internal is refused whole', async () => {
  const { port, seen } = await machine();
  const resolve = answering(['127.0.0.1', '127.0.0.2']);
  expect(await telling(`http://two.example:${port}/`, { resolve, networks: ['127.0.0.1'] })()).toEqual(REFUSED);
  expect(seen.connections).toBe(0);
});

test('a name that leads elsewhere at the next connection is refused then', async () => {
  const { port, seen } = await machine();
  const resolve = answering(['127.0.0.1'], ['127.0.0.2']);
  const tell = telling(`http://rebound.example:${port}/`, { resolve, networks: ['127.0.0.1'] });
  expect(await tell()).toEqual({ kind: 'acknowledged', status: 204 });
  expect(await tell()).toEqual(REFUSED);
  expect(seen).toEqual({ connections: 1, requests: 1 });
});

test('where a redirect leads nobody goes, whether it would be allowed or not', async () => {
  const inside = await machine();
  const outside = await machine({ status: 307, location: `http://127.0.0.1:${inside.port}/` });
  const tell = telling(`http://127.0.0.1:${outside.port}/`, { networks: ['127.0.0.1'] });
  expect(await tell()).toMatchObject({ kind: 'unknown', code: 'http_307' });
  expect(inside.seen.connections).toBe(0);
});
