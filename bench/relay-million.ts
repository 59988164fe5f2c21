import { type Database, transaction } from '../src/store/database.ts';
import { takeDueEffects } from '../src/store/outbox-take.ts';
import { insertKey, relayRate, spread, withLedgerAndSink } from './relay-ledger.ts';

/**
 * `npx tsx bench/relay-million.ts [MANY] [FEW] [PAIRS]`: whether a long queue is drained as fast as a short one, in one run,
 * alternating: effects a second, the process's resident memory while it lasts, and what a poll costs that finds nothing due
 * among the delivered rows. Wanted: many to few from 0.9, and memory and polls that don't grow with the queue.
 */
const many = Number(process.argv[2] ?? '1000000');
const few = Number(process.argv[3] ?? '20000');
const pairs = Number(process.argv[4] ?? '3');
const POLLS = 51;

await withLedgerAndSink(async (db, url) => {
  const ratios: number[] = [];
  await drain(db, url, 'warm-up', 0, few);
  for (let pair = 1; pair <= pairs; pair += 1) {
    const short = await drain(db, url, `few ${pair}`, 2 * pair, few);
    const long = await drain(db, url, `many ${pair}`, 2 * pair + 1, many);
    ratios.push(long / short);
  }
  process.stdout.write(`${many} to ${few}: ${spread(ratios)} over ${pairs} pairs\n`);
});

/** Drains one queue and prints its figures; the memory is the most of each fifth of the takes, which shows a growth. */
async function drain(db: Database, url: string, name: string, year: number, effects: number): Promise<number> {
  const key = await insertKey(db, `${2000 + year}-09`, effects);
  const resident: number[] = [];
  const rate = await relayRate(db, url, key, effects, () => resident.push(process.memoryUsage.rss()));
  const fifth = Math.ceil(resident.length / 5);
  const fifths = [0, 1, 2, 3, 4].map((n) => Math.max(0, ...resident.slice(n * fifth, (n + 1) * fifth)));
  const memory = fifths.map((bytes) => (bytes / 1_048_576).toFixed(0)).join(' ');
  const polls = await pollMs(db, key);
  await db.query('vacuum onceper.outbox');
  const clean = await pollMs(db, key);
  process.stdout.write(
    `${name}: ${effects} effects, ${rate.toFixed(0)}/s, memory ${memory} MB, an empty poll ${polls.toFixed(2)} ms, ${clean.toFixed(2)} ms after a vacuum\n`,
  );
  return rate;
}

/** The median time of a take that finds nothing, its key still marked as delivering. */
async function pollMs(db: Database, key: string): Promise<number> {
  await db.query('update onceper.action set delivering = true where key = $1', [key]);
  const times: number[] = [];
  for (let poll = 0; poll < POLLS; poll += 1) {
    const began = performance.now();
    const { effects } = await transaction(db, { byIndex: true }, (tx) =>
      takeDueEffects(tx, { limit: 400, leaseMs: 60_000, jobs: ['settlement'] }),
    );
    if (effects.length > 0) throw new Error('a delivered queue had something due');
    times.push(performance.now() - began);
  }
  return times.toSorted((a, b) => a - b)[POLLS >> 1] ?? Number.NaN;
}
