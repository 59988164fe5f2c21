import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import pg from 'pg';
import { removeServers } from '../embedded/remove.ts';
import type { StartOptions } from '../embedded/start-servers.ts';
import { up } from '../embedded/up.ts';
import type { StatedSettings } from '../gateway/simulator/settings.ts';
import { type Simulator, startSimulator } from '../gateway/simulator/simulator.ts';
import { connectionOf } from '../store/connection.ts';
import { type Database, openDatabase } from '../store/database.ts';
import { migrate } from '../store/migrate.ts';
import { type Child, startChild } from './children.ts';

/** Where a stage is set and what its processes inherit. */
export interface StageOptions extends Pick<StartOptions, 'databaseUrl' | 'temporalAddress' | 'temporalCli' | 'ports'> {
  /** The stage's own home: its servers, logs and journal lie here. What an earlier stage left there is removed. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** A namespace that exists on a given Temporal; a fresh one where it is not named. */
  readonly namespace?: string;
  readonly taskQueue: string;
  readonly actor: string;
  readonly onProgress?: (sentence: string) => void;
}

/** Real servers with empty data, and the processes of the product beside them; made anew, and gone with its owner. */
export interface Stage {
  readonly folder: string;
  readonly environment: Record<string, string>;
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly uiUrl: string | null;
  readonly taskQueue: string;
  readonly actor: string;
  readonly db: Database;
  readonly client: Client;
  /** The gateway's journal: the truth about money. */
  readonly journal: string;
  readonly gatewayUrl: string;
  /** Starts the gateway, with arguments of `onceper gateway`; worker and relay find it in their environment. */
  startGateway(args?: readonly string[]): Promise<Child>;
  /** Opens a gateway in this process, for drills in which it is not the one that dies; again on its port after it stopped. */
  openGateway(settings?: StatedSettings): Promise<Simulator>;
  /** Starts a process in the stage's environment, changed where `changes` says so. Each has a log of its own. */
  start(name: 'worker' | 'relay', changes?: Readonly<Record<string, string>>): Promise<Child>;
  /** Ends everything in order: no process and no listener of the stage is left. */
  stop(): Promise<void>;
}

/**
 * Sets the stage: both servers, or, where variables name servers, a database `onceper_demo` and a fresh namespace there; then
 * the schema. Whatever fails, nothing is left running.
 */
export async function setStage(options: StageOptions): Promise<Stage> {
  const { folder } = options;
  await removeServers(folder);
  mkdirSync(folder, { recursive: true });
  const servers = await up({ ...options, projectDir: folder });
  const stopServers = servers.kind === 'started' ? servers.stop : () => Promise.resolve();
  try {
    const { databaseUrl: given, temporalAddress } = servers.addresses;
    const databaseUrl = options.databaseUrl === null ? given : await freshDatabase(given);
    await migrate(databaseUrl);
    const namespace =
      options.namespace ?? (options.temporalAddress === null ? 'default' : await freshNamespace(temporalAddress));
    const client = await connectClient(temporalAddress, namespace);
    const db = openDatabase({ url: databaseUrl, name: 'onceper stage', max: 8 });
    const environment = {
      ...options.environment,
      ONCEPER_HOME: folder,
      DATABASE_URL: databaseUrl,
      TEMPORAL_ADDRESS: temporalAddress,
      TEMPORAL_NAMESPACE: namespace,
    };
    const uiUrl = servers.servers.temporal?.uiUrl ?? null;
    return stageOf({ ...options, databaseUrl, temporalAddress, environment, db, client, uiUrl, stopServers });
  } catch (error) {
    await stopServers();
    throw error;
  }
}

type Parts = Omit<Stage, 'journal' | 'gatewayUrl' | 'startGateway' | 'openGateway' | 'start' | 'stop'> & {
  readonly stopServers: () => Promise<void>;
};

function stageOf(parts: Parts): Stage {
  const { folder, db, client, environment } = parts;
  const children = new Set<Child>();
  const journal = join(folder, `journal-${randomUUID()}.jsonl`);
  let started = 0;
  const begin = async (name: string, args: readonly string[], changes: Readonly<Record<string, string>> = {}) => {
    started += 1;
    const logFile = join(folder, 'logs', `${started}-${name}.log`);
    const child = await startChild(name, { args, environment: { ...environment, ...changes }, logFile });
    children.add(child);
    return child;
  };
  const gateways = new Set<Simulator>();
  // A free port the first time, and the same one when it opens again: the relay knows no other.
  const gatewayPort = () => (stage.gatewayUrl === '' ? 0 : Number(new URL(stage.gatewayUrl).port));
  const useGateway = (url: string) => {
    stage.gatewayUrl = url;
    environment['ONCEPER_GATEWAY_URL'] = url;
  };
  const stage = {
    ...parts,
    journal,
    gatewayUrl: '',
    async startGateway(args: readonly string[] = []) {
      const gateway = await begin('gateway', ['--port', String(gatewayPort()), '--journal', journal, ...args]);
      useGateway(String(gateway.ready['url']));
      return gateway;
    },
    async openGateway(settings: StatedSettings = {}) {
      const gateway = await startSimulator({ port: gatewayPort(), journal, settings });
      gateways.add(gateway);
      useGateway(gateway.url);
      return gateway;
    },
    start: (name: 'worker' | 'relay', changes?: Readonly<Record<string, string>>) => begin(name, [], changes),
    async stop() {
      await Promise.all([...children].map((child) => child.stop()));
      await Promise.all([...gateways].map((gateway) => gateway.stop()));
      await client.connection.close();
      await db.close();
      await parts.stopServers();
    },
  };
  return stage;
}

async function connectClient(address: string, namespace: string): Promise<Client> {
  const connection = await Connection.connect({ address });
  return new Client({ connection, namespace });
}

async function freshDatabase(given: string): Promise<string> {
  const admin = new pg.Client({ ...connectionOf(given) });
  await admin.connect();
  try {
    await admin.query('drop database if exists onceper_demo with (force)');
    await admin.query('create database onceper_demo');
    // Its worker is whoever may make databases here.
    await admin.query(`alter database onceper_demo set onceper.embedded = 'on'`);
  } finally {
    await admin.end();
  }
  const url = new URL(given);
  url.pathname = '/onceper_demo';
  return url.href;
}

async function freshNamespace(address: string): Promise<string> {
  const namespace = `onceper-demo-${randomUUID()}`;
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs('1 day'),
    });
  } finally {
    await connection.close();
  }
  return namespace;
}
