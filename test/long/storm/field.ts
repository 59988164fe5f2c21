import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../../src/embedded/ports.ts';
import { openOnceperFolder } from '../../../src/embedded/private-folder.ts';
import { thisProcess } from '../../../src/embedded/project-lock.ts';
import { writeState } from '../../../src/embedded/server-state.ts';
import { openDatabase } from '../../../src/store/database.ts';
import { migrate } from '../../../src/store/migrate.ts';
import { loadFirstRule } from '../../../src/store/rules.ts';
import { buildProduct } from './build.ts';
import { openPost, type Post } from './crew.ts';
import { type Load, writeLoad } from './load.ts';
import { type Network, startNetwork } from './network.ts';
import { gatherPeople, type People } from './people.ts';
import { type StormPostgres, startStormPostgres } from './postgres.ts';
import { type StormTemporal, startStormTemporal } from './temporal.ts';
import { openWeather, type Weather } from './weather.ts';

/** How big a storm is, and by which terms numbers are remembered. */
export interface Terms {
  readonly seed: number;
  readonly months: number;
  readonly merchants: number;
  readonly subjectsPerSlice: number;
  /** True where the counterparty forgets numbers after seconds: then every number here is an old one. */
  readonly forgets: boolean;
}

/** Everything that the faults fall on. */
export interface Field {
  readonly folder: string;
  readonly terms: Terms;
  readonly load: Load;
  readonly postgres: StormPostgres;
  readonly temporal: StormTemporal;
  /** The ways to the database and to the counterparty. */
  readonly ways: { readonly database: Network; readonly bank: Network };
  readonly posts: Readonly<Record<'worker-1' | 'worker-2' | 'relay-1' | 'relay-2' | 'webhooks' | 'gateway', Post>>;
  readonly weather: Weather;
  readonly people: People;
  readonly journal: string;
  readonly gatewayUrl: string;
  /** Documents of ledgers that a restore replaced: by them a transfer of theirs is judged. */
  readonly lives: string;
  /** Backups by name, the oldest first. */
  readonly backups: string[];
  /** Months that people have asked for so far. */
  readonly asked: Set<string>;
  note(line: object): void;
  stop(): Promise<void>;
}

/** A number is remembered longer than the relays are told, as a counterparty's documentation would have it. */
const SHORT = { forgetAfterMs: 20_000, window: '6s' } as const;
const LONG = { forgetAfterMs: null, window: '3650d' } as const;

/** Starts servers and processes with the product of `root`, loads the rule and writes the files; nothing is imported yet. */
export async function openField(root: string, folder: string, terms: Terms): Promise<Field> {
  mkdirSync(join(folder, 'logs'), { recursive: true });
  openOnceperFolder(folder, true);
  const load = writeLoad(root, folder, { ...terms, today: new Date() });
  const [product, postgres, temporal] = await Promise.all([
    buildProduct(root, folder),
    startStormPostgres(folder),
    startStormTemporal(folder),
  ]);
  await migrate(postgres.url);
  const db = openDatabase({ url: postgres.url, name: 'storm', max: 1 });
  await loadFirstRule(db, { job: 'settlement', body: load.rule, loadedBy: 'storm' });
  await db.close();
  beEmbedded(folder, postgres);
  const [gatewayPort, webhooksPort] = [await freePort(), await freePort()];
  const ways = { database: await startNetwork(postgres.port), bank: await startNetwork(gatewayPort) };
  const gatewayUrl = `http://127.0.0.1:${gatewayPort}`;
  const memory = terms.forgets ? SHORT : LONG;
  const weather = openWeather(gatewayUrl, `http://127.0.0.1:${webhooksPort}/webhooks`, memory.forgetAfterMs);
  const base = environmentOf(folder, temporal, weather, memory.window);
  const through = {
    ...base,
    DATABASE_URL: withPort(postgres.url, ways.database.port),
    ONCEPER_GATEWAY_URL: `http://127.0.0.1:${ways.bank.port}`,
  };
  const journal = join(folder, 'journal.jsonl');
  const note = (line: object) => appendFileSync(join(folder, 'logs/storm.jsonl'), `${JSON.stringify(line)}\n`);
  const post = (name: string, command: string, more: { args?: string[]; onReady?: () => Promise<void> } = {}) =>
    openPost({ root: product, folder, name, command, environment: through, ...more });
  const posts = {
    gateway: post('gateway', 'gateway', {
      args: ['--port', String(gatewayPort), '--journal', journal],
      onReady: () => weather.tell(),
    }),
    webhooks: post('webhooks', 'webhooks', { args: ['--port', String(webhooksPort)] }),
    'worker-1': post('worker-1', 'worker'),
    'worker-2': post('worker-2', 'worker'),
    'relay-1': post('relay-1', 'relay'),
    'relay-2': post('relay-2', 'relay'),
  };
  const asked = new Set<string>();
  const people = gatherPeople(
    product,
    () => ({ ...base, DATABASE_URL: postgres.url, ONCEPER_GATEWAY_URL: gatewayUrl }),
    note,
  );
  return {
    folder,
    terms,
    load,
    postgres,
    temporal,
    ways,
    posts,
    weather,
    people,
    journal,
    gatewayUrl,
    note,
    lives: join(folder, 'lives.jsonl'),
    backups: [],
    asked,
    async stop() {
      await Promise.all(Object.values(posts).map((each) => each.end()));
      await Promise.all([ways.database.close(), ways.bank.close()]);
      await Promise.all([temporal.stop(), postgres.stop()]);
    },
  };
}

/** One machine's installation, as `up` would have recorded it: its people are those of this machine. */
function beEmbedded(folder: string, postgres: StormPostgres): void {
  const self = thisProcess();
  const startedAt = new Date().toISOString();
  const { url, port } = postgres;
  const record = { ...self, url, port, dataDir: folder, logFile: folder, version: '18' };
  writeState(folder, { supervisor: self, startedAt, postgres: record, temporal: null, ready: true, processes: [] });
}

function environmentOf(
  folder: string,
  temporal: StormTemporal,
  weather: Weather,
  window: string,
): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    ONCEPER_HOME: folder,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: 'default',
    TEMPORAL_CLI: temporal.cli,
    ONCEPER_TASK_QUEUE: 'storm',
    ONCEPER_WEBHOOK_SECRET: weather.secret,
    ONCEPER_GATEWAY_KEY_WINDOW: window,
    ONCEPER_GATEWAY_TIMEOUT: '1s',
    ONCEPER_GATEWAY_VISIBILITY_DELAY: '500ms',
    ONCEPER_DRAIN_GRACE: '3s',
  };
}

function withPort(url: string, port: number): string {
  const address = new URL(url);
  address.port = String(port);
  return address.href;
}
