/**
 * `npm run bench [-- --quick] [-- --no-peers]`: measures every section by turns in one run on a server of its own, durable as
 * PostgreSQL's defaults are, and writes `bench/results.json` and `bench/results.html`. Another section is another entry of `sectionsOf`.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { type Database, openDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';
import { againBesidePeers, newBesidePeers, type PeerExtent } from './beside-peers.ts';
import { type Contest, setContest } from './contest.ts';
import { walPosition } from './figures.ts';
import { installPeers, nodeOfPeers } from './install.ts';
import { duplicates, newItems } from './items.ts';
import { conditionsOf, pageOf, type Report } from './page.ts';
import { measure, type Result, type Section } from './section.ts';
import { CONNECTIONS, TABLES } from './work.ts';

const isQuick = process.argv.includes('--quick');
const own = isQuick ? { sizes: [1_000, 6_000], rounds: 5 } : { sizes: [2_000, 20_000, 60_000], rounds: 9 };
const beside: PeerExtent = isQuick
  ? { isQuick, items: 6_000, rounds: 5, peerRounds: 3 }
  : { isQuick, items: 20_000, rounds: 5, peerRounds: 5 };

/** Each is prepared when its turn comes, so that it finds the tables as the one before it left them. */
function sectionsOf(db: Database, contest: Contest): readonly (() => Section | Promise<Section>)[] {
  return [
    () => newItems(db, own),
    () => duplicates(db, own),
    () => newBesidePeers(db, contest, beside),
    () => againBesidePeers(db, contest, beside),
  ];
}

async function measureAll(db: Database, contest: Contest): Promise<Pick<Report, 'sections' | 'results'>> {
  const results: Result[] = [];
  const sections: Section[] = [];
  for (const prepare of sectionsOf(db, contest)) {
    const section = await prepare();
    const found = await measure(section, () => walPosition(db));
    for (const { way, items, perSecond, walPerItem, ratio } of found) {
      const digits = ratio.median < 0.1 ? 4 : 2;
      const [middle, least, most] = [ratio.median, ratio.least, ratio.most].map((value) => value.toFixed(digits));
      const figures = `${perSecond.median.toFixed(0)}/s, ${walPerItem.median.toFixed(0)} B of WAL`;
      print(`${section.name}, ${items}, ${way}: ${figures}, ratio ${middle} (${least}–${most})`);
    }
    results.push(...found);
    sections.push(section);
  }
  return { results, sections: sections.map(({ name, work, floor }) => ({ name, work, floor })) };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

const startedAt = `${new Date().toISOString().slice(0, 'YYYY-MM-DDTHH:MM'.length)}Z`;
const dir = mkdtempSync(join(tmpdir(), 'onceper-bench-'));
chmodSync(dir, 0o755);
const obstacle = process.argv.includes('--no-peers') ? 'it was asked for without peers' : installPeers();
const loadBefore = loadavg()[0] ?? 0;
const server = await startPostgres({ dir: join(dir, 'pg'), port: await freePort(), durable: true });
let contest: Contest | null = null;
try {
  await migrate(server.url);
  const db = openDatabase({ url: server.url, name: 'bench', max: CONNECTIONS });
  await db.query(TABLES);
  contest = await setContest({ folder: dir, databaseUrl: server.url, node: nodeOfPeers(), obstacle });
  const found = await measureAll(db, contest);
  const postgres = String(server.version);
  await db.close();
  const processor = cpus()[0]?.model.trim() ?? 'unknown';
  const machine = {
    cores: cpus().length,
    processor,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.version,
    postgres,
    loadBefore,
    loadAfter: loadavg()[0] ?? 0,
  };
  const contestants = contest.entrants.map(({ about, versions, node }) => ({ ...about, versions, node }));
  const report: Report = { startedAt, isQuick, machine, contestants, skipped: contest.skipped, ...found };
  for (const { name, reason } of contest.skipped) print(`not measured: ${name}: ${reason}`);
  print(conditionsOf(report));
  writeFileSync(join(import.meta.dirname, 'results.json'), `${JSON.stringify(report, null, 2)}\n`);
  writeFileSync(join(import.meta.dirname, 'results.html'), pageOf(report));
} finally {
  await contest?.stop();
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}
