import { execFile } from 'node:child_process';
import type { KeyObject } from 'node:crypto';
import { hostname } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import { type Activities, createActivities } from '../../activities/index.ts';
import type { Audience } from '../jobs/job.ts';
import type { Registry } from '../jobs/registry.ts';
import type { Anchor, AuditHead } from '../kernel/audit.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Instant } from '../kernel/sql.ts';
import { workerIdentity } from '../kernel/worker-identity.ts';
import type { Log } from '../observability/log.ts';
import { anchorOf } from '../ops/audit/anchors.ts';
import { scheduleState, topUpSchedule } from '../ops/schedule.ts';
import { compareZones, type ZoneStanding } from '../ops/zones.ts';
import { workerActor } from '../store/audit-ledger.ts';
import type { Database } from '../store/database.ts';
import { readKey, signingKey } from './actor.ts';
import type { Config } from './config.ts';
import { refuseOverprivileged } from './own-login.ts';
import { runProcess } from './process.ts';
import { audienceOf } from './receivers.ts';
import { refuseUnsafeTerms } from './retention.ts';
import { createDatabase, createJobs, temporalUnreachable } from './services.ts';
import { askForLook, keepWatch, lookAfterWatch, statusOfWorkflow } from './watch.ts';

/** Where a worker runs and what it serves; tests make one of their own, the command makes it from the configuration. */
export interface WorkerParts {
  readonly connection: NativeConnection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly db: Database;
  readonly renewals: Database;
  readonly registry: Registry;
  readonly release: string;
  readonly log: Log;
  readonly slots: number;
  readonly graceMs: number;
  readonly draining: AbortSignal;
  /** Signs the anchors of the audit; null leaves them unsigned. */
  readonly auditKey: KeyObject | null;
  /** Who is told of keys that close; nobody where it is absent. */
  readonly audience?: Audience;
  readonly workflowBundle?: WorkerOptions['workflowBundle'];
  /** Stands between Temporal and the activities, for faults on purpose. */
  readonly wrap?: (activities: Activities) => Activities;
}

/**
 * Makes a worker. Every option that matters is set: a sticky queue of 1 s, because a killed worker's tasks wait for it (10 s
 * by default); a grace above 0, because the default cancels activities in flight at every deploy.
 */
export async function createWorker(parts: WorkerParts): Promise<Worker> {
  const client = new Client({ connection: parts.connection, namespace: parts.namespace });
  const activities = createActivities({
    ...parts,
    statusOfWorkflow: (id) => statusOfWorkflow(client, id),
    scheduleState: (job) => scheduleState(client, job),
    topUpSchedule: (job) => topUpSchedule(parts.db, client, { ...parts, job, actor: workerActor(parts.release) }),
    askForLook: () => askForLook(client, parts.log),
    anchor: (head) => logAnchor(parts, head),
  });
  await registerSearchAttributes(parts.connection, parts.namespace, parts.log);
  return Worker.create({
    connection: parts.connection,
    namespace: parts.namespace,
    taskQueue: parts.taskQueue,
    identity: workerIdentity(`${process.pid}@${hostname()}`, { release: parts.release, jobs: parts.registry.ids }),
    workflowBundle: parts.workflowBundle ?? (await bundleWorkflows(parts.draining)),
    activities: { ...(parts.wrap?.(activities) ?? activities) },
    maxConcurrentActivityTaskExecutions: parts.slots + 4,
    maxConcurrentWorkflowTaskExecutions: 16,
    stickyQueueScheduleToStartTimeout: '1 second',
    shutdownGraceTime: parts.graceMs,
    maxHeartbeatThrottleInterval: '750 milliseconds',
    defaultHeartbeatThrottleInterval: '750 milliseconds',
  });
}

/** An anchor is worth what the log is that keeps it: one that the database's owner can't write. */
function logAnchor({ log, auditKey }: WorkerParts, head: AuditHead & { readonly at: Instant }): Anchor {
  const anchor = anchorOf(head, auditKey);
  log({ event: 'audit_anchor', ...anchor });
  return anchor;
}

/** A server that can't be asked about its zones is told of, and stops nothing: no table but the ledger's decides. */
async function standingOfZones(db: Database, client: Client, registry: Registry, log: Log): Promise<ZoneStanding[]> {
  try {
    return await compareZones(db, client, { registry });
  } catch (error) {
    log({ event: 'zones_not_compared', message: error instanceof Error ? error.message : String(error) });
    return [];
  }
}

/** Tables of time zones that differ are told at every start: what is stored goes by the ledger's, whatever this machine believes. */
async function reportZones(db: Database, client: Client, registry: Registry, log: Log): Promise<void> {
  for (const { job, zone, dispute } of await standingOfZones(db, client, registry, log)) {
    if (dispute === null) continue;
    const { at, reads, odd, ledger } = dispute;
    const tables = Object.entries(reads).map(([table, offset]) => `${table} ${offset}`);
    log({ event: 'zone_tables_differ', job, zone, at, odd: odd ?? 'several', reads: tables.join(', '), ledger });
  }
}

/**
 * Bundles the workflows once; a worker then starts in a second. In a process of its own: what the bundler takes would stay with
 * the worker (392 MB at its peak, 319 MB without).
 */
export async function bundleWorkflows(signal?: AbortSignal): Promise<NonNullable<WorkerOptions['workflowBundle']>> {
  const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', BUNDLE, workflowsPath],
    {
      cwd: import.meta.dirname,
      maxBuffer: 64_000_000,
      ...(signal === undefined ? {} : { signal }),
    },
  );
  return { code: stdout };
}

const BUNDLE = `
  import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
  const options = { workflowsPath: process.argv[1], logger: new DefaultLogger('ERROR') };
  process.stdout.write((await bundleWorkflowCode(options)).code);`;

/**
 * `onceper worker`: serves the task queue until SIGTERM, drains, and returns. All that may refuse or hang comes before the worker
 * is made: one that is made must run, or its connection can't be closed. Throws OnceperError `overprivileged`,
 * `temporal_unreachable`, `retention_too_short`, `gateway_terms`, `search_attribute`, `start_timed_out`.
 */
export async function runWorker(config: Config): Promise<void> {
  const { taskQueue, temporal } = config;
  await runProcess(config, 'worker', async ({ log, draining, start, atEnd }) => {
    installRuntime(log);
    const jobs = createJobs();
    const audience = audienceOf(config);
    const auditKey = config.auditKey === null ? null : readKey(config.auditKey, 'ONCEPER_AUDIT_KEY', signingKey);
    const db = createDatabase(config, log, { name: 'onceper worker', max: config.workerSlots + 4 });
    const renewals = createDatabase(config, log, { name: 'onceper renewer', max: 2 });
    atEnd('PostgreSQL', () => Promise.all([db.close(), renewals.close()]));
    await start('PostgreSQL', () => refuseOverprivileged(db, 'worker'));
    const connection = await start('Temporal', () => connectNative(config));
    atEnd('Temporal', () => connection.close());
    const client = new Client({ connection, namespace: temporal.namespace });
    await start('the retention of Temporal', () => refuseUnsafeTerms(config, { db, client, registry: jobs }));
    await start('the tables of time zones', () => reportZones(db, client, jobs, log));
    await start('the watch in Temporal', () => keepWatch(client, taskQueue));
    const worker = await start('its own making', () =>
      createWorker({
        connection,
        namespace: temporal.namespace,
        taskQueue,
        db,
        renewals,
        registry: jobs,
        release: config.release,
        log,
        slots: config.workerSlots,
        graceMs: config.drainGraceMs,
        draining,
        audience,
        auditKey,
      }),
    );
    const running = worker.run();
    if (draining.aborted) worker.shutdown();
    else draining.addEventListener('abort', () => worker.shutdown(), { once: true });
    log({ event: 'worker_started', taskQueue, namespace: temporal.namespace, receivers: audience.receivers });
    const prepare = () => registerSearchAttributes(connection, temporal.namespace, log);
    const over = new AbortController();
    // It ends with the worker, and with the connection that it asks; nothing is lost by not waiting for it.
    void lookAfterWatch(client, { taskQueue, log, prepare }, over.signal);
    await running.finally(() => over.abort());
  });
}

async function connectNative({ temporal }: Config): Promise<NativeConnection> {
  const { connectionOptions } = temporal;
  try {
    return await NativeConnection.connect(connectionOptions);
  } catch (error) {
    throw temporalUnreachable(connectionOptions.address ?? '', error);
  }
}

/** Shutdown is ours (drain.ts): the SDK's own signal handlers would begin a second one. */
function installRuntime(log: Log): void {
  Runtime.install({
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', (entry) => {
      log({ event: 'sdk', level: entry.level === 'ERROR' ? 'error' : 'warn', message: entry.message });
    }),
  });
}

/** INDEXED_VALUE_TYPE_KEYWORD of Temporal's API; @temporalio/proto is CommonJS whose names node can't import. */
const KEYWORD = 2;
const NAMES = ['OnceperJob', 'OnceperPeriod', 'OnceperState'] as const;

/**
 * Registers the search attributes, or checks them where the server refuses to be told (Temporal Cloud). A wrong type is
 * answered "ok" by the server and changes nothing, so what is there is read back.
 */
async function registerSearchAttributes(connection: NativeConnection, namespace: string, log: Log): Promise<void> {
  const wanted = Object.fromEntries(NAMES.map((name) => [name, KEYWORD]));
  const before = await listSearchAttributes(connection, namespace);
  const missing = NAMES.filter((name) => before[name] === undefined);
  if (missing.length > 0) {
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes: wanted });
    log({ event: 'search_attributes_registered', names: missing });
  }
  const after = missing.length > 0 ? await listSearchAttributes(connection, namespace) : before;
  const wrong = NAMES.find((name) => after[name] !== KEYWORD);
  if (wrong === undefined) return;
  throw new OnceperError({
    code: 'search_attribute',
    message: `search attribute ${wrong} is not of type Keyword in namespace ${namespace}`,
    remedy: `npx temporal operator search-attribute create --name ${wrong} --type Keyword (remove the wrong one first)`,
    at: wrong,
  });
}

async function listSearchAttributes(connection: NativeConnection, namespace: string) {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  return customAttributes;
}
