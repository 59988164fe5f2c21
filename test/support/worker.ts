import type { KeyObject } from 'node:crypto';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { Client, Connection } from '@temporalio/client';
import {
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  type WorkerOptions,
} from '@temporalio/worker';
import { inject } from 'vitest';
import type { Activities } from '../../activities/index.ts';
import { bundleWorkflows, createWorker } from '../../src/app/worker.ts';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import type { Log } from '../../src/observability/log.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import type { TestNamespace } from './namespace.ts';

/** A worker in this process, and a client beside it. */
export interface TestWorker {
  readonly client: Client;
  readonly db: Database;
  /** Begins the drain, as SIGTERM does, and waits until the worker has stopped. */
  readonly stop: () => Promise<void>;
}

/** A process has one runtime; its warnings about failures that a test makes on purpose would bury the report. */
Runtime.install({
  logger: new DefaultLogger('ERROR'),
  shutdownSignals: [],
  telemetryOptions: { logging: { filter: makeTelemetryFilterString({ core: 'ERROR', other: 'ERROR' }) } },
});

let bundle: Promise<NonNullable<WorkerOptions['workflowBundle']>> | undefined;

/** The workflows, bundled once a run: it takes seconds, and a dozen files start workers. */
async function bundleOfRun(): Promise<NonNullable<WorkerOptions['workflowBundle']>> {
  const codePath = inject('bundleFile');
  if (existsSync(codePath)) return { codePath };
  const bundled = await bundleWorkflows();
  if (!('code' in bundled)) return bundled;
  // Whole or not at all: another file of the run may look for it meanwhile, or write the same.
  const draft = `${codePath}.${process.pid}`;
  writeFileSync(draft, bundled.code);
  renameSync(draft, codePath);
  return { codePath };
}

/** Starts a worker of the product's own making; `wrap` may put something between Temporal and the activities. */
export async function startTestWorker(options: {
  namespace: TestNamespace;
  databaseUrl: string;
  jobs: readonly Job[];
  wrap?: (activities: Activities) => Activities;
  auditKey?: KeyObject;
  log?: Log;
}): Promise<TestWorker> {
  const { address, namespace } = options.namespace;
  bundle ??= bundleOfRun();
  const connection = await NativeConnection.connect({ address });
  const db = openDatabase({ url: options.databaseUrl, name: 'test worker', max: 20 });
  const renewals = openDatabase({ url: options.databaseUrl, name: 'test renewer', max: 2 });
  const drain = new AbortController();
  const worker = await createWorker({
    connection,
    namespace,
    taskQueue: 'onceper',
    db,
    renewals,
    registry: createRegistry(options.jobs),
    release: 'test',
    log: options.log ?? (() => undefined),
    slots: 8,
    graceMs: 5_000,
    draining: drain.signal,
    auditKey: options.auditKey ?? null,
    workflowBundle: await bundle,
    ...(options.wrap === undefined ? {} : { wrap: options.wrap }),
  });
  const running = worker.run();
  const client = new Client({ connection: await Connection.connect({ address }), namespace });
  return {
    client,
    db,
    async stop() {
      drain.abort();
      worker.shutdown();
      await running;
      await connection.close();
      await client.connection.close();
      await Promise.all([db.close(), renewals.close()]);
    },
  };
}
