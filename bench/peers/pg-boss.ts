import { createHash } from 'node:crypto';
import { PgBoss } from 'pg-boss';
import type { About, Peer, PeerServers } from '../peer.ts';
import { atOnce, BUSINESS, CANONICAL, CONNECTIONS, REQUEST } from '../work.ts';
import { createCounter } from './counter.ts';

const QUEUE = 'pay';
const WORKER = {
  transactional: true,
  batchSize: CONNECTIONS,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
} as const;

/**
 * pg-boss: a job for each item, whose id is made of the item's key: a second one is refused while the first is kept. Of what we tried,
 * this is both the safest and the fastest: with LISTEN/NOTIFY every send waits for the others' commits, one at a time, and a handler on
 * connections of its own needs a record of its own.
 */
export const about: About = {
  name: 'pg-boss',
  packages: ['pg-boss'],
  guarantee:
    'The business row is committed with the completion of its job: once, for as long as pg-boss keeps completed jobs. A batch of jobs is one transaction, so one that fails takes its batch back.',
  settings:
    'transactional handlers, batchSize 16, burstWhenBatchFull, polling every 0.5 s, no LISTEN/NOTIFY, 16 connections, completed jobs kept for good (deleteAfterSeconds 0)',
  again: 'that the job exists (send returns null), and not its result',
  documentation: ['https://pgboss.io/api/workers', 'https://pgboss.io/api/queues', 'https://pgboss.io/api/jobs'],
};

interface Opened {
  readonly boss: PgBoss;
}

/** A queue and one worker of it, which takes sixteen jobs at a time. */
export function createPeer(servers: PeerServers): Peer {
  const ends = createCounter();
  let opened: Opened | null = null;
  const started = () => {
    if (opened === null) throw new Error('pg-boss is not open');
    return opened.boss;
  };
  const send = (key: string) => started().send(QUEUE, { key, ...REQUEST }, { id: idOf(key) });
  return {
    async open() {
      const boss = new PgBoss({ connectionString: servers.databaseUrl, max: CONNECTIONS });
      boss.on('error', (error) => ends.failed(error));
      await boss.start();
      await boss.createQueue(QUEUE, { deleteAfterSeconds: 0 });
      opened = { boss };
    },
    async perform(keys) {
      const done = ends.expect(keys.length);
      await started().work<{ key: string }, undefined, typeof WORKER>(QUEUE, WORKER, async (jobs, tx) => {
        try {
          for (const job of jobs) await tx.executeSql(BUSINESS, [job.data.key, CANONICAL]);
        } catch (error) {
          ends.failed(error);
          throw error;
        }
        for (const _ of jobs) ends.ended();
      });
      await Promise.all([atOnce(keys, send), done]);
      // The handler ends before its transaction does.
      await started().offWork(QUEUE, { wait: true });
    },
    again: (keys) => atOnce(keys, send),
    async close() {
      await opened?.boss.stop();
      opened = null;
    },
  };
}

/** pg-boss takes UUIDs only. */
function idOf(key: string): string {
  const hex = createHash('sha256').update(key).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}
