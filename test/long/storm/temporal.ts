import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { freePort } from '../../../src/embedded/ports.ts';
import { startTemporal } from '../../../src/embedded/temporal.ts';
import { cacheFolder, findTemporalCli } from '../../../src/embedded/temporal-cli.ts';
import { pause } from './pause.ts';
import { signalAll } from './processes.ts';

/** A Temporal of the storm's own, which can be killed and made to forget. */
export interface StormTemporal {
  readonly address: string;
  readonly cli: string;
  readonly pid: () => number;
  /** What a raw client does; the connection is closed afterwards. */
  withClient<T>(work: (client: Client) => Promise<T>): Promise<T>;
  /** SIGKILL, and a start with what is on the disk. */
  crash(): Promise<void>;
  freeze(ms: number): Promise<void>;
  /** Ends it, deletes its state, and starts it at the same address. */
  erase(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it with its state in a file of the folder. */
export async function startStormTemporal(folder: string): Promise<StormTemporal> {
  const cli = await findTemporalCli({
    explicit: process.env['TEMPORAL_CLI'] ?? null,
    path: process.env['PATH'] ?? '',
    cacheDir: cacheFolder(process.env['XDG_CACHE_HOME'] ?? null),
  });
  const databaseFile = join(folder, 'temporal.db');
  const port = await freePort();
  const logFile = join(folder, 'logs/temporal.log');
  const begin = () => startTemporal({ cli: cli.file, port, uiPort: null, databaseFile, namespace: 'default', logFile });
  let server = await begin();
  const end = async () => {
    signalAll([server.pid], 'SIGKILL');
    await server.exited;
  };
  return {
    address: server.address,
    cli: cli.file,
    pid: () => server.pid,
    async withClient(work) {
      const connection = await Connection.connect({ address: server.address, connectTimeout: 3_000 });
      try {
        return await work(new Client({ connection }));
      } finally {
        await connection.close();
      }
    },
    async crash() {
      await end();
      server = await begin();
    },
    async freeze(ms) {
      signalAll([server.pid], 'SIGSTOP');
      await pause(ms);
      signalAll([server.pid], 'SIGCONT');
    },
    async erase() {
      await end();
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${databaseFile}${suffix}`, { force: true });
      server = await begin();
    },
    stop: () => server.stop(),
  };
}
