import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { cacheFolder } from '../../embedded/temporal-cli.ts';
import { nextFreePort } from '../../embedded/ports.ts';
import { removeServers } from '../../embedded/remove.ts';
import { up } from '../../embedded/up.ts';
import { migrate } from '../../store/migrate.ts';
import { type Database, openDatabase } from '../../store/database.ts';
import { type Config, demoFolder, loadConfig, ownEnvironment } from '../config.ts';
import { connectTemporal } from '../services.ts';
import { type Child, startChild } from './children.ts';

/** The servers and processes of a demo, made anew for it and gone with it. */
export interface Stage {
  readonly config: Config;
  readonly environment: Record<string, string>;
  readonly db: Database;
  readonly client: Client;
  readonly folder: string;
  readonly journal: string;
  readonly gatewayUrl: string;
  readonly uiUrl: string | null;
  /** Starts gateway, worker and relay; they need the schema and the rule. */
  startProcesses(): Promise<void>;
  /** Ends everything in order: no process and no listener of the demo is left. */
  stop(): Promise<void>;
}

/**
 * Sets the stage: both servers with empty data of their own under `.onceper/demo`, or, where variables name servers, a
 * database `onceper_demo` and a fresh namespace there; then the schema. What an earlier demo left is removed first.
 */
export async function setStage(config: Config, onProgress: (sentence: string) => void): Promise<Stage> {
  const folder = demoFolder(config.home);
  await removeServers(folder);
  mkdirSync(folder, { recursive: true });
  const servers = await up({
    projectDir: folder,
    databaseUrl: config.given.databaseUrl,
    temporalAddress: config.given.temporalAddress,
    temporalCli: {
      explicit: config.temporalCli.fromVariable,
      path: config.temporalCli.path,
      cacheDir: cacheFolder(config.temporalCli.xdgCacheHome),
    },
    onProgress,
  });
  const stopServers = servers.kind === 'started' ? servers.stop : () => Promise.resolve();
  try {
    const environment = await environmentOf(config, folder);
    const own = loadConfig(environment);
    const url = own.databaseUrl ?? '';
    await migrate(url);
    const client = await connectTemporal(own);
    const db = openDatabase({ url, name: 'onceper demo', max: 6, onIdleError: () => undefined });
    const uiUrl = servers.servers.temporal?.uiUrl ?? null;
    return stageOf({ config: own, environment, db, client, folder, uiUrl, stopServers });
  } catch (error) {
    await stopServers();
    throw error;
  }
}

function stageOf(
  parts: Pick<Stage, 'config' | 'environment' | 'db' | 'client' | 'folder' | 'uiUrl'> & {
    stopServers: () => Promise<void>;
  },
): Stage {
  const { folder, db, client } = parts;
  const children: Child[] = [];
  const journal = join(folder, `journal-${randomUUID()}.jsonl`);
  const stage = {
    ...parts,
    journal,
    gatewayUrl: '',
    async startProcesses() {
      const port = await nextFreePort(8290);
      const logFolder = join(folder, 'logs');
      const gateway = await startChild('gateway', {
        args: ['--port', String(port), '--journal', journal],
        environment: parts.environment,
        logFolder,
      });
      children.push(gateway);
      stage.gatewayUrl = `http://127.0.0.1:${port}`;
      parts.environment['ONCEPER_GATEWAY_URL'] = stage.gatewayUrl;
      const others = ['worker', 'relay'].map((name) => startChild(name, { environment: parts.environment, logFolder }));
      const started = await Promise.allSettled(others);
      // Those that did start are kept first: what is thrown next must not leave one of them running.
      for (const other of started) if (other.status === 'fulfilled') children.push(other.value);
      for (const other of started) if (other.status === 'rejected') throw other.reason;
    },
    async stop() {
      await Promise.all(children.toReversed().map((child) => child.stop()));
      await client.connection.close();
      await db.close();
      await parts.stopServers();
    },
  };
  return stage;
}

/** The variables of the demo's children: its own home and, on servers that variables name, places of its own there. */
async function environmentOf(config: Config, folder: string): Promise<Record<string, string>> {
  const environment: Record<string, string> = { ...ownEnvironment(), ONCEPER_HOME: folder };
  if (config.given.databaseUrl !== null) environment['DATABASE_URL'] = await freshDatabase(config.given.databaseUrl);
  if (config.given.temporalAddress !== null) environment['TEMPORAL_NAMESPACE'] = await freshNamespace(config);
  return environment;
}

async function freshDatabase(given: string): Promise<string> {
  const admin = new pg.Client({ connectionString: given });
  await admin.connect();
  try {
    await admin.query('drop database if exists onceper_demo with (force)');
    await admin.query('create database onceper_demo');
  } finally {
    await admin.end();
  }
  const url = new URL(given);
  url.pathname = '/onceper_demo';
  return url.href;
}

async function freshNamespace(config: Config): Promise<string> {
  const namespace = `onceper-demo-${randomUUID()}`;
  const client = await connectTemporal(config);
  try {
    await client.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
  } finally {
    await client.connection.close();
  }
  return namespace;
}
