/**
 * `node bench/peers/child.ts PEER SERVERS`: one peer in a process of its own, on the Node that it needs. Requests come as JSON lines
 * on stdin and are answered in order on stdout; everything else that the peer prints goes to stderr. Ends with its stdin.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Peer, PeerModule, PeerReply, PeerRequest, PeerServers } from '../peer.ts';
import { keysOf } from '../work.ts';

const [name = '', servers = '{}'] = process.argv.slice(2);
const answer = process.stdout.write.bind(process.stdout);
// Libraries log to stdout as they like; an answer among their lines would be lost.
process.stdout.write = process.stderr.write.bind(process.stderr) as typeof process.stdout.write;

const module = (await import(`./${name}.ts`)) as PeerModule;
const peer = module.createPeer(JSON.parse(servers) as PeerServers);

for await (const line of createInterface({ input: process.stdin })) {
  answer(`${JSON.stringify(await replyTo(peer, JSON.parse(line) as PeerRequest))}\n`);
}
// The bench has gone or is through with us: what a library would still keep open must not outlive it.
process.exit(0);

async function replyTo(peer: Peer, request: PeerRequest): Promise<PeerReply> {
  if (request.verb === 'about') {
    return { kind: 'about', about: module.about, versions: versionsOf(module.about.packages), node: process.version };
  }
  try {
    const keys = keysOf(request.round ?? '', request.items ?? 0);
    if (request.verb === 'open') await peer.open();
    else if (request.verb === 'close') await peer.close();
    else if (request.verb === 'perform') await peer.perform(keys);
    else await peer.again(keys);
    return { kind: 'done' };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    return { kind: 'failed', message: error instanceof Error ? error.message : String(error) };
  }
}

/** Read from the files: not every package exports its package.json. */
function versionsOf(packages: readonly string[]): Record<string, string> {
  return Object.fromEntries(packages.map((name) => [name, versionOf(name)]));
}

function versionOf(name: string): string {
  for (const root of [path.join(import.meta.dirname, '..'), path.join(import.meta.dirname, '../..')]) {
    const file = path.join(root, 'node_modules', name, 'package.json');
    try {
      return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
  throw new Error(`the package ${name} is not installed`);
}
