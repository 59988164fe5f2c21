import { connect, createServer, type Server, type Socket } from 'node:net';
import { createMessageReader, type Message, sqlOf } from './postgres-messages.ts';

/** A statement on its way to the server, and those before it in the same transaction, its begin first. */
export interface Spoken {
  readonly sql: string;
  readonly transaction: readonly string[];
}

/**
 * What becomes of a statement: it passes; it waits, with all that follows on its connection, until it is released; or it
 * passes, and the connection is reset as soon as the server has answered, so that the answer is lost.
 */
export type Ruling = 'pass' | 'hold' | 'lose_answer';

/** A stretch of network between a process and its server, which a drill can break at a chosen moment. */
export interface TcpProxy {
  /** The server's address, through here. */
  readonly url: string;
  /** Connections on which a statement waits. */
  held(): number;
  /** Lets everything go that waits, in its order; from now on nothing waits. */
  release(): void;
  /** Resets every connection of this moment, as a machine that vanishes; later ones pass. */
  cut(): void;
  close(): Promise<void>;
}

/** Starts a proxy on a free port of 127.0.0.1 to the server of a `postgresql://` URL. `rule` is asked about every statement. */
export async function startPostgresProxy(databaseUrl: string, rule: (spoken: Spoken) => Ruling): Promise<TcpProxy> {
  const url = new URL(databaseUrl);
  let mayHold = true;
  const ruled = (spoken: Spoken) => {
    const ruling = rule(spoken);
    return ruling === 'hold' && !mayHold ? 'pass' : ruling;
  };
  const proxy = await startProxy(Number(url.port), (bridge) => postgresFlow(bridge, ruled));
  url.port = String(proxy.port);
  return {
    ...proxy,
    url: url.href,
    release() {
      mayHold = false;
      proxy.release();
    },
  };
}

/** A proxy that only carries bytes, and may stop carrying answers. */
export interface PlainProxy extends TcpProxy {
  readonly port: number;
  /** From now on nothing arrives of what the server says, while every connection stands. */
  hush(): void;
}

/** Starts a proxy that only carries bytes, to a server at `host:port` of this machine. */
export async function startPlainProxy(address: string): Promise<PlainProxy> {
  let isHushed = false;
  const proxy = await startProxy(Number(address.split(':')[1]), ({ client, server }) => {
    client.on('data', (data) => server.write(data));
    server.on('data', (data) => {
      if (!isHushed) client.write(data);
    });
    return { isHeld: () => false, release: () => undefined };
  });
  return {
    ...proxy,
    url: `127.0.0.1:${proxy.port}`,
    hush() {
      isHushed = true;
    },
  };
}

interface Bridge {
  readonly client: Socket;
  readonly server: Socket;
}

/** How bytes flow over one bridge. */
interface Flow {
  isHeld(): boolean;
  release(): void;
}

type StartedProxy = Omit<TcpProxy, 'url'> & { readonly port: number };

async function startProxy(port: number, flowOver: (bridge: Bridge) => Flow): Promise<StartedProxy> {
  const flows = new Map<Bridge, Flow>();
  const listener = createServer({ noDelay: true }, (client) => {
    const server = connect({ port, host: '127.0.0.1', noDelay: true });
    const bridge = { client, server };
    flows.set(bridge, flowOver(bridge));
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      // Either end may vanish at any moment: that is what this is for.
      one.on('error', () => other.destroy());
      one.on('end', () => other.end());
      one.on('close', () => {
        other.destroy();
        flows.delete(bridge);
      });
    }
  });
  await listening(listener);
  const address = listener.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    held: () => [...flows.values()].filter((flow) => flow.isHeld()).length,
    release() {
      for (const flow of flows.values()) flow.release();
    },
    cut() {
      for (const { client, server } of flows.keys()) {
        client.resetAndDestroy();
        server.destroy();
      }
    },
    async close() {
      const closed = new Promise((resolve) => listener.close(resolve));
      for (const { client, server } of flows.keys()) {
        client.destroy();
        server.destroy();
      }
      await closed;
    },
  };
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve());
  });
}

function postgresFlow({ client, server }: Bridge, rule: (spoken: Spoken) => Ruling): Flow {
  let transaction: readonly string[] = [];
  let waiting: Message[] | null = null;
  let isLosing = false;

  function take(message: Message): void {
    if (waiting !== null) {
      waiting.push(message);
      return;
    }
    const sql = sqlOf(message);
    const ruling = sql === null ? 'pass' : rule({ sql, transaction });
    if (sql !== null) transaction = /^begin\b/i.test(sql) ? [sql] : [...transaction, sql];
    if (ruling === 'hold') waiting = [message];
    else server.write(message.bytes);
    if (ruling === 'lose_answer') isLosing = true;
  }

  client.on('data', createMessageReader(take));
  server.on('data', (data) => {
    if (!isLosing) {
      client.write(data);
      return;
    }
    client.resetAndDestroy();
    server.destroy();
  });
  return {
    isHeld: () => waiting !== null,
    release() {
      const [first, ...rest] = waiting ?? [];
      waiting = null;
      if (first !== undefined) server.write(first.bytes);
      for (const message of rest) take(message);
    },
  };
}
