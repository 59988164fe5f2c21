import { chmodSync, createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { freePort } from '../src/embedded/ports.ts';
import { startPostgres } from '../src/embedded/postgres.ts';
import { parseRule } from '../src/jobs/rule.ts';
import { importFile } from '../src/jobs/settlement/import/import-file.ts';
import { writeSample } from '../src/jobs/settlement/sample/write-sample.ts';
import { connect, type Database, openDatabase } from '../src/store/database.ts';
import { migrate } from '../src/store/migrate.ts';
import { medianOf, spreadOf } from './figures.ts';

/**
 * `npx tsx bench/import.ts [ROWS] [PAIRS]`: an import of a generated file (gz) against COPY of the very rows that it stored,
 * read from a file in COPY's own form into the same table with the same constraints and indexes; on one durable PostgreSQL,
 * alternating. The import parses, checks and places every row and finds duplicates; COPY does nothing of that.
 */
const rows = Number(process.argv[2] ?? '1000000');
const pairs = Number(process.argv[3] ?? '3');
/** The rows of a merchant and month in the sample are 1 to 8. */
const ROWS_A_MERCHANT = 4.5;

const rule = parseRule(
  {
    job: 'settlement',
    zone: 'UTC',
    period: 'month',
    first: '2001-01',
    calendar: { dayOfMonth: 1, hour: 2, minute: 0 },
    parameters: { fees: { GBP: { basisPoints: 150, fixed: '20' } } },
  },
  'the bench',
);

const folder = mkdtempSync(path.join(tmpdir(), 'onceper-import-'));
chmodSync(folder, 0o755);
const server = await startPostgres({ dir: path.join(folder, 'postgres'), port: await freePort(), durable: true });
try {
  await migrate(server.url);
  const db = openDatabase({ url: server.url, name: 'import bench', max: 2 });
  const csv = path.join(folder, 'sample.csv.gz');
  const sample = await writeSample(csv, {
    months: ['2001-01'],
    merchants: Math.ceil(rows / ROWS_A_MERCHANT),
    seed: 20_260_901,
  });
  print(`${sample.rows} rows, ${Math.round(statSync(csv).size / 1e6)} MB of gz`);
  const copied = path.join(folder, 'rows.copy');
  const ours: number[] = [];
  const bare: number[] = [];
  await emptyTables(db);
  await importOnce(db, csv, sample.rows);
  await exportRows(copied);
  for (let pair = 1; pair <= pairs; pair += 1) {
    for (const way of pair % 2 === 1 ? (['ours', 'bare'] as const) : (['bare', 'ours'] as const)) {
      await emptyTables(db);
      if (way === 'ours') ours.push(await timed(() => importOnce(db, csv, sample.rows)));
      else bare.push(await timed(() => copyOnce(copied)));
    }
    print(`pair ${pair}: COPY ${bare.at(-1)?.toFixed(1)} s, import ${ours.at(-1)?.toFixed(1)} s`);
  }
  const ratio = spreadOf(bare.map((seconds, at) => seconds / (ours[at] ?? Number.NaN)));
  const peak = Math.round(process.resourceUsage().maxRSS / 1024);
  print(
    `import to COPY: ${(medianOf(bare) / medianOf(ours)).toFixed(2)} (${ratio.least.toFixed(2)}–${ratio.most.toFixed(2)}), ` +
      `${Math.round(sample.rows / medianOf(ours))} rows/s, peak memory ${peak} MB`,
  );
  await db.close();
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function importOnce(db: Database, file: string, expected: number): Promise<void> {
  const imported = await importFile({ connect: () => connect(db), file, source: 'generic', actor: 'bench', rule });
  if (imported.kind !== 'imported' || imported.added !== expected)
    throw new Error(JSON.stringify(imported).slice(0, 400));
}

async function emptyTables(db: Database): Promise<void> {
  await db.query('truncate settlement.transaction, settlement.import, settlement.merchant');
  await db.query('checkpoint');
}

async function exportRows(file: string): Promise<void> {
  await withClient(async (client) => {
    await pipeline(client.query(copyTo('copy settlement.transaction to stdout')), createWriteStream(file));
  });
}

async function copyOnce(file: string): Promise<void> {
  await withClient(async (client) => {
    await pipeline(
      createReadStream(file, { highWaterMark: 1 << 20 }),
      client.query(copyFrom('copy settlement.transaction from stdin')),
    );
  });
}

async function withClient(work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function timed(act: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await act();
  return (performance.now() - began) / 1_000;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
