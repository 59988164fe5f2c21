import { Queue, Worker } from 'bullmq';
import type { About, Peer, PeerServers } from '../peer.ts';
import { atOnce, CONNECTIONS, REQUEST } from '../work.ts';
import { type Business, openBusiness } from './business.ts';
import { createCounter } from './counter.ts';

const QUEUE = 'pay';

/**
 * BullMQ on Redis: a job for each item, under the item's key as its id, which is refused while the first is kept. Redis and PostgreSQL
 * don't commit together, so the handler is the floor's whole statement, with a record of its own.
 */
export const about: About = {
  name: 'BullMQ',
  packages: ['bullmq', 'ioredis'],
  guarantee:
    "A job is worked at least once, unless Redis loses its last second when its machine crashes; the business row is written once because the handler has a record of its own. PostgreSQL's WAL is counted, Redis's file is not.",
  settings:
    'Redis with appendonly yes, appendfsync everysec, maxmemory-policy noeviction; worker concurrency 16; maxRetriesPerRequest null for the worker; done jobs are kept; 16 connections for the handlers',
  again: 'that the job exists (nothing is added), and not its result',
  documentation: [
    'https://docs.bullmq.io/guide/going-to-production',
    'https://docs.bullmq.io/guide/workers/concurrency',
    'https://docs.bullmq.io/guide/jobs/job-ids',
  ],
};

interface Opened {
  readonly queue: Queue;
  readonly worker: Worker;
  readonly business: Business;
}

/** A queue and one worker of it in this process. */
export function createPeer(servers: PeerServers): Peer {
  const ends = createCounter();
  let opened: Opened | null = null;
  const add = async (key: string) => {
    if (opened === null) throw new Error('BullMQ is not open');
    // A colon is BullMQ's own separator.
    await opened.queue.add('item', { key, ...REQUEST }, { jobId: key.replaceAll(':', '/') });
  };
  return {
    async open() {
      const business = openBusiness(servers.databaseUrl);
      const connection = { host: '127.0.0.1', port: servers.redisPort ?? 0 };
      const queue = new Queue(QUEUE, { connection });
      const worker = new Worker<{ key: string }>(QUEUE, (job) => business.work(job.data.key), {
        connection: { ...connection, maxRetriesPerRequest: null },
        concurrency: CONNECTIONS,
      });
      opened = { queue, worker, business };
      queue.on('error', (error) => ends.failed(error));
      worker.on('completed', () => ends.ended());
      worker.on('failed', (_, error) => ends.failed(error));
      worker.on('error', (error) => ends.failed(error));
      await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
    },
    async perform(keys) {
      const done = ends.expect(keys.length);
      await Promise.all([atOnce(keys, add), done]);
    },
    again: (keys) => atOnce(keys, add),
    async close() {
      await opened?.worker.close();
      await opened?.queue.close();
      await opened?.business.close();
      opened = null;
    },
  };
}
