import path from 'node:path';
import type { About, PeerServers } from './peer.ts';
import { type PeerProcess, startPeer } from './peer-process.ts';
import { type PeerServer, startDevServer, startRedis } from './peer-servers.ts';

/** A peer as the bench knows it before its process has said what it is. */
interface Entry {
  /** Its file in bench/peers. */
  readonly file: string;
  readonly name: string;
  /** Of its keys; three letters for all, as longer keys would be more WAL. */
  readonly mark: string;
  /** Items a round, so that each takes a second or two: quick and whole. */
  readonly items: readonly [quick: number, whole: number];
}

const ENTRIES: readonly Entry[] = [
  { file: 'pg-boss', name: 'pg-boss', mark: 'bos', items: [700, 4_000] },
  { file: 'graphile-worker', name: 'graphile-worker', mark: 'gra', items: [700, 4_000] },
  { file: 'dbos', name: 'DBOS Transact', mark: 'dbo', items: [300, 2_500] },
  { file: 'bullmq', name: 'BullMQ', mark: 'bul', items: [1_000, 6_000] },
  { file: 'temporal', name: 'Temporal, a workflow an item', mark: 'tem', items: [32, 160] },
];

/** A peer that has shown that it can do the work here. */
export interface Entrant extends Entry {
  readonly about: About;
  readonly versions: Readonly<Record<string, string>>;
  readonly node: string;
  readonly process: PeerProcess;
}

/** A peer without figures, and why. */
export interface Skipped {
  readonly name: string;
  readonly reason: string;
}

/** The peers that take part, and those that don't. */
export interface Contest {
  readonly entrants: readonly Entrant[];
  /** Grows when one fails in the middle. */
  readonly skipped: Skipped[];
  /** Ends the peers' processes and servers. */
  stop(): Promise<void>;
}

/**
 * Starts each peer's process, has it do a few items, and closes it until its first round. `obstacle` says why no peer can run at all,
 * `node` is the one they run on. Whoever can't is named with the reason.
 */
export async function setContest(options: {
  readonly folder: string;
  readonly databaseUrl: string;
  readonly node: string | null;
  readonly obstacle: string | null;
}): Promise<Contest> {
  const skipped: Skipped[] = [];
  const entrants: Entrant[] = [];
  const obstacle = options.obstacle ?? (options.node === null ? 'no Node 22 for this kind of machine is on npm' : null);
  if (obstacle !== null || options.node === null) {
    return {
      entrants,
      skipped: ENTRIES.map(({ name }) => ({ name, reason: obstacle ?? '' })),
      stop: async () => undefined,
    };
  }
  const redis = await startRedis(options.folder);
  const temporal = await startDevServer(options.folder);
  const needs: Readonly<Record<string, PeerServer>> = { bullmq: redis, temporal };
  const servers: PeerServers = {
    databaseUrl: options.databaseUrl,
    redisPort: redis.kind === 'started' ? redis.port : null,
    temporalAddress: temporal.kind === 'started' ? `127.0.0.1:${temporal.port}` : null,
  };
  for (const entry of ENTRIES) {
    const server = needs[entry.file];
    if (server?.kind === 'absent') {
      skipped.push({ name: entry.name, reason: server.reason });
      continue;
    }
    const logFile = path.join(options.folder, `${entry.file}.log`);
    const peer = startPeer({ name: entry.file, node: options.node, servers, logFile });
    try {
      entrants.push(await admitted(entry, peer, server?.version));
    } catch (error) {
      await peer.stop();
      skipped.push({ name: entry.name, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return {
    entrants,
    skipped,
    async stop() {
      for (const { process } of entrants) await process.stop();
      for (const server of [redis, temporal]) if (server.kind === 'started') await server.stop();
    },
  };
}

async function admitted(entry: Entry, process: PeerProcess, server: string | undefined): Promise<Entrant> {
  const reply = await process.ask({ verb: 'about' });
  if (reply.kind !== 'about') throw new Error('it did not say what it is');
  await process.ask({ verb: 'open' });
  await process.ask({ verb: 'perform', round: `${entry.mark}-try`, items: 16 });
  await process.ask({ verb: 'close' });
  const versions = server === undefined ? reply.versions : { ...reply.versions, server };
  return { ...entry, about: reply.about, versions, node: reply.node, process };
}
