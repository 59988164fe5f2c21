import path from 'node:path';
import { Client, Connection, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  NativeConnection,
  Runtime,
  Worker,
  type WorkflowBundle,
} from '@temporalio/worker';
import type { About, Peer, PeerServers } from '../peer.ts';
import { atOnce, CONNECTIONS } from '../work.ts';
import { type Business, openBusiness } from './business.ts';

const TASK_QUEUE = 'bench';

/** What the workflow of an item calls. */
export interface ItemActivities {
  pay(key: string): Promise<string>;
}

/**
 * Temporal with a workflow of its own for each item (which is how Onceper does not use it): the item's key is the workflow's id. Temporal
 * and PostgreSQL don't commit together, so the activity is the floor's whole statement, with a record of its own.
 */
export const about: About = {
  name: 'Temporal, a workflow an item',
  packages: ['@temporalio/client', '@temporalio/worker', '@temporalio/workflow'],
  guarantee:
    "A started workflow ends, its activity worked at least once; the business row is written once because the activity has a record of its own. Duplicates are known for the namespace's retention. PostgreSQL's WAL is counted; the dev server's file is not.",
  settings:
    'dev server of the CLI with a database file; reuse policy REJECT_DUPLICATE; 16 activities at a time, the rest of the worker as preset; 16 connections for the activities',
  again: 'that the workflow exists, and then its stored result, in two calls',
  documentation: [
    'https://docs.temporal.io/workflow-execution/workflowid-runid',
    'https://docs.temporal.io/develop/worker-performance',
  ],
};

/** A client and a worker in this process. */
export function createPeer(servers: PeerServers): Peer {
  let bundle: WorkflowBundle | null = null;
  let opened: { client: Client; close: () => Promise<void> } | null = null;
  const ask = async (key: string) => {
    if (opened === null) throw new Error('Temporal is not open');
    const { workflow } = opened.client;
    const options = {
      taskQueue: TASK_QUEUE,
      workflowId: key,
      args: [key],
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
    } as const;
    try {
      await workflow.execute('item', options);
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      await workflow.getHandle(key).result();
    }
  };
  return {
    async open() {
      if (bundle === null) {
        Runtime.install({ logger: new DefaultLogger('ERROR') });
        bundle = await bundleWorkflowCode({
          workflowsPath: path.join(import.meta.dirname, 'temporal-workflow.ts'),
          logger: new DefaultLogger('ERROR'),
        });
      }
      opened = await openTemporal(servers, bundle, openBusiness(servers.databaseUrl));
    },
    perform: (keys) => atOnce(keys, ask),
    again: (keys) => atOnce(keys, ask),
    close: async () => opened?.close(),
  };
}

async function openTemporal(servers: PeerServers, workflowBundle: WorkflowBundle, business: Business) {
  const address = servers.temporalAddress ?? '';
  const connection = await NativeConnection.connect({ address });
  const activities: ItemActivities = {
    async pay(key) {
      await business.work(key);
      return key;
    },
  };
  const worker = await Worker.create({
    connection,
    taskQueue: TASK_QUEUE,
    workflowBundle,
    activities,
    maxConcurrentActivityTaskExecutions: CONNECTIONS,
  });
  const running = worker.run();
  const ours = await Connection.connect({ address });
  return {
    client: new Client({ connection: ours }),
    async close() {
      worker.shutdown();
      await running;
      await ours.close();
      await connection.close();
      await business.close();
    },
  };
}
