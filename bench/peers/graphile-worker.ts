import { EventEmitter } from 'node:events';
import { Logger, type Runner, run, type WorkerEvents } from 'graphile-worker';
import pg from 'pg';
import type { About, Peer, PeerServers } from '../peer.ts';
import { atOnce, CONNECTIONS, REQUEST } from '../work.ts';
import { type Business, openBusiness } from './business.ts';
import { createCounter } from './counter.ts';

const WORKER = {
  worker: { concurrentJobs: CONNECTIONS, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
};

/**
 * graphile-worker: a job for each item, under the item's key as its job key. A done job is deleted and its key forgotten, so the handler
 * is the floor's whole statement, with a record of its own; an item that is asked for again is a job again, which finds that record.
 */
export const about: About = {
  name: 'graphile-worker',
  packages: ['graphile-worker'],
  guarantee:
    'A job is kept from addJob on and worked at least once; the business row is written once because the handler has a record of its own. Of done jobs nothing is known.',
  settings:
    'concurrentJobs 16, localQueue.size 500, completeJobBatchDelay 0 and failJobBatchDelay 0 (those of its performance page), 17 connections for it and 16 for the handlers',
  again: 'nothing: the job is done again, and its handler finds its record',
  documentation: ['https://worker.graphile.org/docs/performance', 'https://worker.graphile.org/docs/job-key'],
};

interface Opened {
  readonly runner: Runner;
  readonly pool: pg.Pool;
  readonly business: Business;
}

/** A runner in this process, which both adds the jobs and works on them. */
export function createPeer(servers: PeerServers): Peer {
  const ends = createCounter();
  let opened: Opened | null = null;
  const perform = async (keys: readonly string[]) => {
    if (opened === null) throw new Error('graphile-worker is not open');
    const { runner, pool } = opened;
    const done = ends.expect(keys.length);
    const add = (key: string) => runner.addJob('pay', { key, ...REQUEST }, { jobKey: key });
    await Promise.all([atOnce(keys, add), done]);
    await untilDeleted(pool);
  };
  return {
    async open() {
      const business = openBusiness(servers.databaseUrl);
      const pool = new pg.Pool({ connectionString: servers.databaseUrl, max: CONNECTIONS + 1 });
      pool.on('error', (error) => ends.failed(error));
      pool.on('connect', (client) => client.on('error', (error) => ends.failed(error)));
      const events: WorkerEvents = new EventEmitter();
      events.on('job:success', () => ends.ended());
      events.on('job:error', ({ error }) => ends.failed(error));
      const runner = await run({
        preset: WORKER,
        pgPool: pool,
        events,
        noHandleSignals: true,
        // A line for each job is what its worker prints as preset; the others print none.
        logger: new Logger(() => () => undefined),
        taskList: { pay: (payload) => business.work((payload as { key: string }).key) },
      });
      opened = { runner, pool, business };
    },
    perform,
    again: perform,
    async close() {
      await opened?.runner.stop();
      await opened?.pool.end();
      await opened?.business.close();
      opened = null;
    },
  };
}

/** Completions are written a moment after the handlers' ends, in batches. */
async function untilDeleted(pool: pg.Pool): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ left: boolean }>('select exists (select from graphile_worker.jobs) as left');
    if (rows[0]?.left === false) return;
  }
}
