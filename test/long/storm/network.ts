import { connect, createServer, type Socket } from 'node:net';
import { pause } from './pause.ts';

/** A stretch of network to one server, in which bytes can be late, lost or cut off. */
export interface Network {
  readonly port: number;
  /** Resets every connection of this moment; returns how many there were. */
  reset(): number;
  /** For so long every piece of bytes is `late` milliseconds on its way. */
  slow(late: number, ms: number): Promise<void>;
  /** For so long nothing passes, in either direction; then every connection is reset. */
  blackHole(ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts it on a free port of 127.0.0.1. */
export async function startNetwork(targetPort: number): Promise<Network> {
  const sockets = new Set<Socket>();
  let late = 0;
  let isHole = false;
  const carry = (from: Socket, to: Socket) => {
    sockets.add(from);
    let way = Promise.resolve();
    from.on('data', (bytes) => {
      if (late === 0 && !isHole) {
        // Behind what is still on its way, and never before it.
        way = way.then(() => void to.write(bytes));
        return;
      }
      way = way.then(async () => {
        await pause(late);
        if (!isHole && !to.destroyed) to.write(bytes);
      });
    });
    // Either end may vanish at any moment: that is what this is for.
    from.on('error', () => to.destroy());
    from.on('end', () => void way.then(() => to.end()));
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createServer({ noDelay: true }, (client) => {
    const target = connect({ port: targetPort, host: '127.0.0.1', noDelay: true });
    carry(client, target);
    carry(target, client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const address = server.address();
  const reset = () => {
    const count = sockets.size / 2;
    for (const socket of sockets) socket.resetAndDestroy();
    return count;
  };
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    reset,
    async slow(by, ms) {
      late = by;
      await pause(ms);
      late = 0;
    },
    async blackHole(ms) {
      isHole = true;
      await pause(ms);
      reset();
      isHole = false;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      reset();
      await closed;
    },
  };
}
