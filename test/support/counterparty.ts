import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';

/** A counterparty that answers every request with what a test gives it, and remembers how often it was asked. */
export interface TestCounterparty {
  readonly url: string;
  readonly sends: number;
  readonly lookUps: number;
}

/** What it says: the answer's text for a send, and for a look-up. */
export interface Says {
  readonly send: string;
  readonly lookUp: string;
}

/** Counterparties of one test file, which are stopped after each test. */
export function useTestCounterparties(): (says: Says) => Promise<TestCounterparty> {
  const stops: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0)) await stop();
  });
  return async (says) => {
    const counts = { sends: 0, lookUps: 0 };
    const server = createServer((request, response) => {
      const isSend = request.method === 'POST';
      counts[isSend ? 'sends' : 'lookUps'] += 1;
      request.resume().once('end', () => {
        response.writeHead(isSend ? 201 : 200, { 'content-type': 'application/json' });
        response.end(isSend ? says.send : says.lookUp);
      });
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    stops.push(() => {
      server.close();
      server.closeAllConnections();
      return once(server, 'close');
    });
    const { port } = server.address() as AddressInfo;
    return Object.defineProperties({ url: `http://127.0.0.1:${port}` } as TestCounterparty, {
      sends: { get: () => counts.sends },
      lookUps: { get: () => counts.lookUps },
    });
  };
}
