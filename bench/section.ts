import { type Spread, spreadOf } from './figures.ts';

/** One way of doing the work of a section. It does `items` new items of the round and returns when all are committed. */
export interface Way {
  readonly name: string;
  readonly perform: (round: string, items: number) => Promise<void>;
  /** Slow ways get fewer items, and fewer rounds, than the section has. */
  readonly mostItems?: number;
  readonly mostRounds?: number;
  /** Around each round and outside of its time: getting ready, and afterwards looking whether the work was done. */
  readonly before?: (round: string) => Promise<void>;
  readonly after?: (round: string, items: number) => Promise<void>;
  /** Told when a round fails; the way is left out from then on. Without it the failure ends the benchmark. */
  readonly onFailure?: (error: unknown) => Promise<void>;
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
  readonly rounds: number;
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
export async function measure(section: Section, wal: () => Promise<bigint>): Promise<Result[]> {
  const results: Result[] = [];
  const failed = new Set<string>();
  for (const size of section.sizes) {
    const found = new Map<string, Round[]>(section.ways.map(({ name }) => [name, []]));
    for (let round = 0; round <= section.rounds; round += 1) {
      for (const way of round % 2 === 0 ? section.ways : section.ways.toReversed()) {
        if (failed.has(way.name) || round > (way.mostRounds ?? section.rounds)) continue;
        const one = await attempted(way, `${size}-${round}`, itemsOf(way, size), wal);
        if (one === null) failed.add(way.name);
        else if (round > 0) found.get(way.name)?.push(one);
      }
    }
    const rates = (name: string) => {
      const way = section.ways.find((one) => one.name === name);
      return (found.get(name) ?? []).map(({ seconds }) => (way === undefined ? 0 : itemsOf(way, size)) / seconds);
    };
    for (const way of section.ways.filter(({ name }) => !failed.has(name))) {
      const of = { section: section.name, way: way.name, items: itemsOf(way, size) };
      results.push(resultOf(of, found.get(way.name) ?? [], rates(section.floor)));
    }
  }
  return results;
}

function itemsOf(way: Way, size: number): number {
  return Math.min(size, way.mostItems ?? size);
}

/** Null where the round failed and the way's owner was told. */
async function attempted(way: Way, round: string, items: number, wal: () => Promise<bigint>): Promise<Round | null> {
  try {
    await way.before?.(round);
    const one = await timed(way, round, items, wal);
    await way.after?.(round, items);
    return one;
  } catch (error) {
    if (way.onFailure === undefined) throw error;
    await way.onFailure(error);
    return null;
  }
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
  floor: readonly number[],
): Result {
  return {
    ...of,
    rounds: some.length,
    seconds: spreadOf(some.map(({ seconds }) => seconds)),
    perSecond: spreadOf(some.map(({ seconds }) => of.items / seconds)),
    walPerItem: spreadOf(some.map(({ walBytes }) => walBytes / of.items)),
    ratio: spreadOf(some.map(({ seconds }, at) => of.items / seconds / (floor[at] ?? Number.NaN))),
  };
}
