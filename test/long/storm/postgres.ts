import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../../src/embedded/ports.ts';
import { type EmbeddedPostgres, startPostgres } from '../../../src/embedded/postgres.ts';
import { waitFor } from '../../support/wait.ts';
import { pause } from './pause.ts';
import { familyOf, signalAll } from './processes.ts';

/** A PostgreSQL of the storm's own, which can be killed, stopped in its tracks and put back to an older state of its files. */
export interface StormPostgres {
  readonly url: string;
  readonly port: number;
  /** One statement on a connection of its own. Throws where the server is away. */
  query<Row extends pg.QueryResultRow>(sql: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Waits until it answers, a minute at most: after that it throws. */
  untilUp(): Promise<void>;
  /** A connection for a session that does several things; the caller ends it. */
  connect(): Promise<pg.Client>;
  /** `SIGKILL` ends every process at once, `SIGQUIT` is an immediate shutdown; then it starts again. */
  crash(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void>;
  /** Every process stands still so long. */
  freeze(ms: number): Promise<void>;
  /** Ends it as a machine that dies, keeps its files under a name, and starts it again. */
  backUp(name: string): Promise<void>;
  /** Puts the files that were kept under a name in place of its own: a restore, whatever the backup's age. */
  restore(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it with its data below `folder`, and every commit on the disk before it is answered. */
export async function startStormPostgres(folder: string): Promise<StormPostgres> {
  const port = await freePort();
  const begin = (): Promise<EmbeddedPostgres> =>
    startPostgres({ dir: join(folder, '.onceper/postgres'), port, durable: true });
  let server = await begin();
  const { url } = server;
  const kept = (name: string) => join(folder, `files-${name}`);
  const copy = (from: string, to: string) => execFileSync('cp', ['-a', '--reflink=auto', from, to]);
  const end = async (signal: 'SIGKILL' | 'SIGQUIT') => {
    const family = familyOf(server.pid);
    signalAll(signal === 'SIGKILL' ? family : [server.pid], signal);
    await server.exited;
    signalAll(family, 'SIGKILL');
  };
  const connect = async () => {
    const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 3_000, query_timeout: 20_000 });
    // A connection that the storm ends is reported by the query that fails.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  return {
    url,
    port,
    connect,
    async untilUp() {
      const answers = async () => {
        const client = await connect();
        await client.end();
        return true;
      };
      await waitFor(answers, { what: 'the database', timeoutMs: 60_000, everyMs: 200 });
    },
    async query<Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) {
      const client = await connect();
      try {
        return (await client.query<Row>(sql, [...values])).rows;
      } finally {
        await client.end();
      }
    },
    async crash(signal) {
      await end(signal);
      server = await begin();
    },
    async freeze(ms) {
      const family = familyOf(server.pid);
      signalAll(family, 'SIGSTOP');
      await pause(ms);
      signalAll(family, 'SIGCONT');
    },
    async backUp(name) {
      await end('SIGKILL');
      rmSync(kept(name), { recursive: true, force: true });
      copy(server.dataDir, kept(name));
      server = await begin();
    },
    async restore(name) {
      await end('SIGKILL');
      rmSync(server.dataDir, { recursive: true, force: true });
      copy(kept(name), server.dataDir);
      server = await begin();
    },
    stop: () => server.stop(),
  };
}
