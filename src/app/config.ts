import { join } from 'node:path';
import { type ClientConnectConfig, loadClientConnectConfig } from '@temporalio/envconfig';
import { z } from 'zod';
import { projectFolder } from '../embedded/project-folder.ts';
import { runningServers } from '../embedded/server-state.ts';
import type { ReceiverAddress } from '../gateway/receivers.ts';
import { PROBE_DEFAULTS, type ProbeTerms } from '../kernel/destination.ts';
import { OnceperError } from '../kernel/error.ts';
import { checkedAddress } from '../store/connection.ts';
import { type DeliveryConfig, deliveryOf, deliveryVariables, refuseLowCap } from './delivery-config.ts';
import { type GatewayFiles, gatewayFiles } from './gateway-credentials.ts';
import { type IdentityConfig, identityOf, peopleVariables, type ServerConfig, serverOf } from './people-config.ts';
import { networkList, receiverList } from './receiver-list.ts';
import { count, duration, wait } from './variable-shapes.ts';

/** Everything a process is told from outside, read once and checked; no other file reads the environment. */
export interface Config {
  /** The folder whose `.onceper/` holds the embedded servers. */
  readonly home: string;
  readonly databaseUrl: string | null;
  readonly temporal: ClientConnectConfig & { readonly namespace: string };
  /** What was given by name, so that `up` starts only what was not. */
  readonly given: { readonly databaseUrl: string | null; readonly temporalAddress: string | null };
  readonly temporalCli: {
    readonly fromVariable: string | null;
    readonly path: string;
    readonly xdgCacheHome: string | null;
  };
  readonly taskQueue: string;
  readonly release: string;
  readonly logLevel: string;
  readonly identity: IdentityConfig;
  readonly server: ServerConfig;
  /** The file of the private key that signs the audit's anchors, or of the public one that only checks them. */
  readonly auditKey: string | null;
  /** How long the start of a process may take. */
  readonly startTimeoutMs: number;
  readonly drainGraceMs: number;
  readonly workerSlots: number;
  readonly gateway: {
    readonly kind: 'http' | 'stripe';
    readonly stripeKey: string | null;
    /** The file that names the connected account of each destination. */
    readonly stripeAccounts: string | null;
    readonly url: string | null;
    /** Whether http may lead to another machine. */
    readonly plainHttp: 'loopback' | 'anywhere';
    /** The files of credentials; what they hold is logged nowhere. */
    readonly files: GatewayFiles;
    readonly keyWindowMs: number;
    readonly visibilityDelayMs: number;
    readonly timeoutMs: number;
    readonly connections: number;
    /** Calls a second for each relay; null sets no limit. */
    readonly callsPerSecond: number | null;
    /** When it is tried again while it is paused. */
    readonly probe: ProbeTerms;
  };
  readonly delivery: DeliveryConfig;
  /** The secret that counterparties sign their webhooks with; it is logged nowhere. */
  readonly webhookSecret: string | null;
  /** Who is told of keys that close. */
  readonly receivers: {
    readonly addresses: readonly ReceiverAddress[];
    /** Secrets as JSON, or the file that holds them; logged nowhere. */
    readonly secrets: string | null;
    /** Internal networks in which receivers may be. */
    readonly networks: readonly string[];
    readonly timeoutMs: number;
    /** CloudEvents' `source`. */
    readonly source: string;
  };
}

/**
 * Our own variables. The defaults of the gateway are those of a strict counterparty: 24 h of key memory (Stripe's lower bound)
 * and a minute until a transfer must be visible. The drain grace lies above the gateway's time-out.
 */
const variables = z.strictObject({
  ONCEPER_HOME: z.string().optional(),
  ONCEPER_TASK_QUEUE: z.string().min(1).default('onceper'),
  ONCEPER_RELEASE: z.string().min(1).default('dev'),
  ONCEPER_LOG_LEVEL: z.enum(['debug', 'info', 'warn', 'error', 'silent']).default('info'),
  ...peopleVariables,
  ONCEPER_AUDIT_KEY: z.string().optional(),
  ONCEPER_START_TIMEOUT: duration.default(60_000),
  ONCEPER_DRAIN_GRACE: duration.default(15_000),
  ONCEPER_WORKER_SLOTS: count.default(8),
  ONCEPER_GATEWAY: z.enum(['http', 'stripe']).default('http'),
  ONCEPER_STRIPE_KEY: z.string().optional(),
  ONCEPER_STRIPE_ACCOUNTS: z.string().optional(),
  ONCEPER_GATEWAY_URL: z.url({ protocol: /^https?$/ }).optional(),
  ONCEPER_GATEWAY_PLAIN_HTTP: z.enum(['loopback', 'anywhere']).default('loopback'),
  ONCEPER_GATEWAY_TOKEN_FILE: z.string().optional(),
  ONCEPER_GATEWAY_CERT_FILE: z.string().optional(),
  ONCEPER_GATEWAY_KEY_FILE: z.string().optional(),
  ONCEPER_GATEWAY_CA_FILE: z.string().optional(),
  ONCEPER_GATEWAY_KEY_WINDOW: duration.default(86_400_000),
  ONCEPER_GATEWAY_VISIBILITY_DELAY: duration.default(60_000),
  ONCEPER_GATEWAY_TIMEOUT: wait.default(10_000),
  ONCEPER_GATEWAY_CONNECTIONS: count.default(32),
  ONCEPER_GATEWAY_RATE: count.optional(),
  ONCEPER_GATEWAY_PROBE: wait.default(PROBE_DEFAULTS.firstMs),
  ONCEPER_GATEWAY_PROBE_CAP: wait.default(PROBE_DEFAULTS.capMs),
  ...deliveryVariables,
  ONCEPER_WEBHOOK_SECRET: z.string().optional(),
  ONCEPER_RECEIVERS: receiverList.default([]),
  ONCEPER_RECEIVER_SECRETS: z.string().optional(),
  ONCEPER_RECEIVER_NETWORKS: networkList.default([]),
  ONCEPER_RECEIVER_TIMEOUT: wait.default(10_000),
  ONCEPER_EVENT_SOURCE: z.string().regex(/^\S+$/, 'a URI without blanks').default('onceper'),
});

type Environment = Readonly<Record<string, string>>;

/**
 * Reads the configuration: variables first, then the servers that `onceper up` started here, then Temporal's own defaults.
 * Throws OnceperError `bad_configuration` naming the variable and the likely fix; an unknown ONCEPER_ variable is one.
 */
export function loadConfig(environment: Environment = ownEnvironment()): Config {
  const own = parseVariables(environment);
  refuseLowCap('ONCEPER_GATEWAY_PROBE', own.ONCEPER_GATEWAY_PROBE, own.ONCEPER_GATEWAY_PROBE_CAP);
  const home = own.ONCEPER_HOME ?? projectFolder();
  const running = runningServers(home) ?? runningServers(demoFolder(home));
  const databaseUrl = set(environment['DATABASE_URL']);
  const given = {
    databaseUrl: databaseUrl === null ? null : checkedAddress(databaseUrl, 'DATABASE_URL'),
    temporalAddress: set(environment['TEMPORAL_ADDRESS']),
  };
  const profile = temporalProfile(environment, running?.temporal?.address ?? null);
  const address = profile.connectionOptions.address ?? '127.0.0.1:7233';
  return {
    home,
    databaseUrl: given.databaseUrl ?? running?.postgres?.url ?? null,
    temporal: {
      ...profile,
      connectionOptions: { ...profile.connectionOptions, address },
      namespace: profile.namespace ?? 'default',
    },
    given,
    temporalCli: {
      fromVariable: set(environment['TEMPORAL_CLI']),
      path: environment['PATH'] ?? '',
      xdgCacheHome: set(environment['XDG_CACHE_HOME']),
    },
    taskQueue: own.ONCEPER_TASK_QUEUE,
    release: own.ONCEPER_RELEASE,
    logLevel: own.ONCEPER_LOG_LEVEL,
    identity: identityOf(own, given.databaseUrl, running?.postgres?.url ?? null),
    server: serverOf(own),
    auditKey: own.ONCEPER_AUDIT_KEY ?? null,
    startTimeoutMs: own.ONCEPER_START_TIMEOUT,
    drainGraceMs: own.ONCEPER_DRAIN_GRACE,
    workerSlots: own.ONCEPER_WORKER_SLOTS,
    gateway: {
      kind: own.ONCEPER_GATEWAY,
      stripeKey: own.ONCEPER_STRIPE_KEY ?? null,
      stripeAccounts: own.ONCEPER_STRIPE_ACCOUNTS ?? null,
      url: own.ONCEPER_GATEWAY_URL ?? null,
      plainHttp: own.ONCEPER_GATEWAY_PLAIN_HTTP,
      files: gatewayFiles(own),
      keyWindowMs: own.ONCEPER_GATEWAY_KEY_WINDOW,
      visibilityDelayMs: own.ONCEPER_GATEWAY_VISIBILITY_DELAY,
      timeoutMs: own.ONCEPER_GATEWAY_TIMEOUT,
      connections: own.ONCEPER_GATEWAY_CONNECTIONS,
      callsPerSecond: own.ONCEPER_GATEWAY_RATE ?? null,
      probe: { firstMs: own.ONCEPER_GATEWAY_PROBE, capMs: own.ONCEPER_GATEWAY_PROBE_CAP },
    },
    delivery: deliveryOf(own),
    webhookSecret: own.ONCEPER_WEBHOOK_SECRET ?? null,
    receivers: {
      addresses: own.ONCEPER_RECEIVERS,
      secrets: own.ONCEPER_RECEIVER_SECRETS ?? null,
      networks: own.ONCEPER_RECEIVER_NETWORKS,
      timeoutMs: own.ONCEPER_RECEIVER_TIMEOUT,
      source: own.ONCEPER_EVENT_SOURCE,
    },
  };
}

/** The database's address; throws OnceperError `database_unset` where none is known. */
export function requireDatabaseUrl(config: Config): string {
  if (config.databaseUrl !== null) return config.databaseUrl;
  throw new OnceperError({
    code: 'database_unset',
    message: 'no database: DATABASE_URL is not set and no embedded server runs here',
    remedy: 'npx onceper up --detach, or set DATABASE_URL',
    at: 'DATABASE_URL',
  });
}

/** The process's environment, for children that must inherit it. */
export function ownEnvironment(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}

function parseVariables(environment: Environment): z.infer<typeof variables> {
  const own = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => name.startsWith('ONCEPER_') && value !== undefined && value !== '',
    ),
  );
  const parsed = variables.safeParse(own);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue?.code === 'unrecognized_keys') {
    const [name = ''] = issue.keys;
    throw bad(name, `${name} is no variable of this product`, `did you mean ${nearest(name)}?`);
  }
  const name = String(issue?.path[0] ?? '');
  throw bad(name, `${name}: ${issue?.message ?? 'not usable'}`, `mend or unset ${name}`);
}

/**
 * Temporal's own variables and profiles; a profile that is not there or a file that is no TOML is ours to report. A server of
 * ours that runs goes before a person's default profile, which may be of some other server and hold its keys; a variable that
 * names an address, a profile or a file goes before both.
 */
function temporalProfile(environment: Environment, running: string | null): ClientConnectConfig {
  const names = ['TEMPORAL_ADDRESS', 'TEMPORAL_PROFILE', 'TEMPORAL_CONFIG_FILE'];
  if (running !== null && names.every((name) => set(environment[name]) === null)) {
    return { connectionOptions: { address: running }, namespace: set(environment['TEMPORAL_NAMESPACE']) ?? 'default' };
  }
  try {
    return loadClientConnectConfig({ overrideEnvVars: { ...environment } });
  } catch (error) {
    const [why = ''] = String(error instanceof Error ? error.message : error).split('\n');
    const at = environment['TEMPORAL_PROFILE'] ? 'TEMPORAL_PROFILE' : 'TEMPORAL_CONFIG_FILE';
    throw bad(
      at,
      `Temporal's own configuration can't be read: ${why}`,
      `mend or unset ${at}, or mend the file it names`,
    );
  }
}

function bad(at: string, message: string, remedy: string): OnceperError {
  return new OnceperError({ code: 'bad_configuration', message, remedy, at });
}

function nearest(name: string): string {
  const known = Object.keys(variables.shape);
  const shared = (other: string) =>
    other.split('').filter((letter, at) => name[at] === letter).length - Math.abs(other.length - name.length);
  return known.reduce((best, other) => (shared(other) > shared(best) ? other : best));
}

function set(value: string | undefined): string | null {
  return value === undefined || value === '' ? null : value;
}

/** Where a demo keeps its own servers, apart from those of `up`. */
export function demoFolder(home: string): string {
  return join(home, '.onceper', 'demo');
}
