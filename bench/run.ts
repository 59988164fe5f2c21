/**
 * `npm run bench [-- --quick]`: measures every section by turns in one run on a server of its own, durable as PostgreSQL's defaults
 * are, and writes `bench/results.json` and `bench/results.html`. Another section is another entry of `sectionsOf`.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { type Database, openDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';
import { walPosition } from './figures.ts';
import { CONNECTIONS, duplicates, newItems } from './items.ts';
import { pageOf } from './page.ts';
import { measure, type Result, type Section } from './section.ts';

const isQuick = process.argv.includes('--quick');
const rounds = isQuick ? 5 : 9;
const sizes = isQuick ? [1_000, 6_000] : [2_000, 20_000, 60_000];

/** Each is prepared when its turn comes, so that it finds the tables as the one before it left them. */
function sectionsOf(db: Database): readonly (() => Promise<Section>)[] {
  return [() => newItems(db, sizes), () => duplicates(db, sizes)];
}

async function measureAll(db: Database): Promise<Result[]> {
  const results: Result[] = [];
  for (const prepare of sectionsOf(db)) {
    const found = await measure(await prepare(), rounds, () => walPosition(db));
    for (const { section, way, items, perSecond, walPerItem, ratio } of found) {
      const figures = `${perSecond.median.toFixed(0)}/s, ${walPerItem.median.toFixed(0)} B of WAL, ratio ${ratio.median.toFixed(2)}`;
      process.stdout.write(
        `${section}, ${items}, ${way}: ${figures} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)})\n`,
      );
    }
    results.push(...found);
  }
  return results;
}

const dir = mkdtempSync(join(tmpdir(), 'onceper-bench-'));
chmodSync(dir, 0o755);
const loadBefore = loadavg()[0] ?? 0;
const server = await startPostgres({ dir: join(dir, 'pg'), port: await freePort(), durable: true });
try {
  await migrate(server.url);
  const db = openDatabase({ url: server.url, name: 'bench', max: CONNECTIONS });
  const results = await measureAll(db);
  const version = await db.serverVersion();
  await db.close();
  const load = `load ${loadBefore.toFixed(1)} before and ${(loadavg()[0] ?? 0).toFixed(1)} after`;
  const conditions = `${cpus().length} cores, Node ${process.version}, PostgreSQL ${version}, ${rounds} rounds by turns, ${load}.`;
  writeFileSync(join(import.meta.dirname, 'results.json'), `${JSON.stringify({ conditions, results }, null, 2)}\n`);
  writeFileSync(join(import.meta.dirname, 'results.html'), pageOf(results, conditions));
} finally {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
}
