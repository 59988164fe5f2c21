import { type Spread, spreadOf } from './figures.ts';

/** One way of doing the work of a section. It does `items` new items of the round and returns when all are committed. */
export interface Way {
  readonly name: string;
  readonly perform: (round: string, items: number) => Promise<void>;
}

/** Ways that do the same work, measured in the same run by turns; the ratios are to `floor`. */
export interface Section {
  readonly name: string;
  /** What one item is, for the page. */
  readonly work: string;
  readonly floor: string;
  readonly ways: readonly Way[];
  /** Rising numbers of items; the largest gives the rates, all of them give cost against size. */
  readonly sizes: readonly number[];
}

/** One measured round of a way. */
interface Round {
  readonly seconds: number;
  readonly walBytes: number;
}

/** What a way took at one size. `ratio` is of the pairs of one round: this way's rate to the floor's. */
export interface Result {
  readonly section: string;
  readonly way: string;
  readonly items: number;
  readonly rounds: number;
  readonly seconds: Spread;
  readonly perSecond: Spread;
  readonly walPerItem: Spread;
  readonly ratio: Spread;
}

/** Measures each way at each size, `rounds` times by turns; a first round warms up and does not count. */
export async function measure(section: Section, rounds: number, wal: () => Promise<bigint>): Promise<Result[]> {
  const results: Result[] = [];
  for (const items of section.sizes) {
    const found = new Map<string, Round[]>(section.ways.map(({ name }) => [name, []]));
    for (let round = 0; round <= rounds; round += 1) {
      for (const way of round % 2 === 0 ? section.ways : section.ways.toReversed()) {
        const one = await timed(way, `${items}-${round}`, items, wal);
        if (round > 0) found.get(way.name)?.push(one);
      }
    }
    const floor = found.get(section.floor) ?? [];
    for (const [way, some] of found) results.push(resultOf({ section: section.name, way, items }, some, floor));
  }
  return results;
}

async function timed(way: Way, round: string, items: number, wal: () => Promise<bigint>): Promise<Round> {
  const before = await wal();
  const began = performance.now();
  await way.perform(round, items);
  const seconds = (performance.now() - began) / 1_000;
  return { seconds, walBytes: Number((await wal()) - before) };
}

function resultOf(
  of: { readonly section: string; readonly way: string; readonly items: number },
  some: readonly Round[],
  floor: readonly Round[],
): Result {
  return {
    ...of,
    rounds: some.length,
    seconds: spreadOf(some.map(({ seconds }) => seconds)),
    perSecond: spreadOf(some.map(({ seconds }) => of.items / seconds)),
    walPerItem: spreadOf(some.map(({ walBytes }) => walBytes / of.items)),
    ratio: spreadOf(some.map(({ seconds }, at) => (floor[at]?.seconds ?? Number.NaN) / seconds)),
  };
}
