import type { Spread } from './figures.ts';
import type { Result } from './section.ts';

const COLOURS = ['#4269d0', '#efb118', '#ff725c', '#6cc5b0', '#3ca951', '#a463f2'];
const [WIDTH, BAR, LABEL] = [720, 30, 260];

/** The results as one page: for each section its table, bars of items a second and WAL an item, and cost against size. */
export function pageOf(results: readonly Result[], conditions: string): string {
  const sections = [...new Set(results.map(({ section }) => section))].map((section) =>
    sectionOf(
      section,
      results.filter((one) => one.section === section),
    ),
  );
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Onceper: benchmarks</title>
<style>body{font:15px sans-serif;margin:2em;max-width:60em}td,th{padding:.2em .8em;text-align:right}th:first-child,td:first-child{text-align:left}</style>
<h1>Benchmarks</h1>
<p>${escaped(conditions)} Medians; in brackets the least and the most of the rounds. Absolute rates move with the machine: read the ratios.</p>
${sections.join('\n')}
</html>
`;
}

function sectionOf(name: string, results: readonly Result[]): string {
  const most = Math.max(...results.map(({ items }) => items));
  const largest = results.filter(({ items }) => items === most);
  const rows = largest.map(
    (one) =>
      `<tr><td>${escaped(one.way)}<td>${written(one.perSecond, 0)}<td>${written(one.walPerItem, 0)}<td>${written(one.ratio, 2)}`,
  );
  return `<h2>${escaped(name)}</h2>
<table><tr><th>${most} items<th>items/s<th>WAL, bytes an item<th>ratio to the floor
${rows.join('\n')}</table>
${bars('items a second', largest, ({ perSecond }) => perSecond)}
${bars('WAL, bytes an item', largest, ({ walPerItem }) => walPerItem)}
${curves(results)}`;
}

function bars(title: string, results: readonly Result[], of: (one: Result) => Spread): string {
  const scale = (WIDTH - LABEL - 90) / Math.max(1, ...results.map((one) => of(one).most));
  const drawn = results.map((one, at) => {
    const [y, { median, least, most }] = [24 + at * BAR, of(one)];
    return `<text x="0" y="${y + 16}">${escaped(one.way)}</text>
<rect x="${LABEL}" y="${y}" width="${(median * scale).toFixed(1)}" height="${BAR - 8}" fill="${colour(at)}"/>
<path d="M${(LABEL + least * scale).toFixed(1)} ${y + 11}H${(LABEL + most * scale).toFixed(1)}" stroke="#222"/>
<text x="${(LABEL + most * scale + 8).toFixed(1)}" y="${y + 16}">${median.toFixed(0)}</text>`;
  });
  return figure(title, 30 + results.length * BAR, drawn);
}

/** Seconds over items, both as logarithms: work whose cost is its size is a straight line of slope 1. */
function curves(results: readonly Result[]): string {
  const sizes = results.map(({ items }) => Math.log10(items));
  const times = results.map(({ seconds }) => Math.log10(seconds.median));
  const x = between(sizes, 60, 420);
  const y = between(times, 250, 40);
  const ways = [...new Set(results.map(({ way }) => way))];
  const drawn = ways.map((way, at) => {
    const some = results.filter((one) => one.way === way);
    const points = some.map((one) => `${x(Math.log10(one.items))},${y(Math.log10(one.seconds.median))}`);
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour(at)}" stroke-width="2"/>
<text x="440" y="${50 + at * 20}" fill="${colour(at)}">${escaped(way)}: slope ${slope(some).toFixed(2)}</text>`;
  });
  const marks = [...new Set(results.map(({ items }) => items))].map(
    (items) => `<text x="${x(Math.log10(items))}" y="275" text-anchor="middle">${items}</text>`,
  );
  return figure('cost against size: seconds over items, logarithmic', 285, [...drawn, ...marks]);
}

/** Of log time over log size, from the smallest to the largest. */
function slope(some: readonly Result[]): number {
  const [first, last] = [some[0], some.at(-1)];
  if (first === undefined || last === undefined) return Number.NaN;
  return Math.log(last.seconds.median / first.seconds.median) / Math.log(last.items / first.items);
}

function between(values: readonly number[], from: number, to: number): (value: number) => string {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  return (value) => (from + ((value - least) / (most - least || 1)) * (to - from)).toFixed(1);
}

function figure(title: string, height: number, drawn: readonly string[]): string {
  return `<svg viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" font-size="13"><title>${escaped(title)}</title>
<text x="0" y="14" font-weight="bold">${escaped(title)}</text>
${drawn.join('\n')}
</svg>`;
}

function colour(at: number): string {
  return COLOURS[at % COLOURS.length] ?? '#222';
}

function written({ median, least, most }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${least.toFixed(digits)}–${most.toFixed(digits)})`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
