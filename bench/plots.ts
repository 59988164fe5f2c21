import type { Spread } from './figures.ts';
import type { Result } from './section.ts';

/** Middle tones: each can be told from black and from white. */
const COLOURS = ['#4269d0', '#c98a00', '#e2593f', '#2f9e85', '#3c9a4a', '#9457e0', '#8c6d4f', '#7a8290'];
const [WIDTH, BAR, LABEL, FIGURES] = [760, 30, 250, 110];

/** A bar for each way, the line over it from the least to the most. The scale begins at 0 and is marked. */
export function bars(title: string, unit: string, results: readonly Result[], of: (one: Result) => Spread): string {
  const most = rounded(Math.max(1, ...results.map((one) => of(one).most)));
  const scale = (WIDTH - LABEL - FIGURES) / most;
  const bottom = 26 + results.length * BAR;
  const drawn = results.map((one, at) => {
    const [y, { median, least, most }] = [24 + at * BAR, of(one)];
    return `<text x="${LABEL - 8}" y="${y + 16}" text-anchor="end">${escaped(one.way)}</text>
<rect x="${LABEL}" y="${y}" width="${(median * scale).toFixed(1)}" height="${BAR - 8}" fill="${colour(at)}"/>
<path d="M${(LABEL + least * scale).toFixed(1)} ${y + 11}H${(LABEL + most * scale).toFixed(1)}" stroke="currentColor"/>
<text x="${(LABEL + most * scale + 8).toFixed(1)}" y="${y + 16}">${grouped(median)}</text>`;
  });
  const axis = [0, 0.5, 1].map((part) => {
    const x = (LABEL + part * most * scale).toFixed(1);
    return `<path d="M${x} ${bottom}v5" stroke="currentColor"/><text x="${x}" y="${bottom + 18}" text-anchor="middle">${grouped(part * most)}</text>`;
  });
  const line = `<path d="M${LABEL} ${bottom}H${WIDTH - FIGURES}" stroke="currentColor"/><text x="${WIDTH - FIGURES + 40}" y="${bottom + 18}">${escaped(unit)}</text>`;
  return figure(title, bottom + 26, [...drawn, line, ...axis]);
}

/** Seconds over items, both as logarithms: work whose cost is its size is a straight line of slope 1. */
export function curves(results: readonly Result[]): string {
  const x = between(
    results.map(({ items }) => Math.log10(items)),
    90,
    430,
  );
  const y = between(
    results.map(({ seconds }) => Math.log10(seconds.median)),
    240,
    40,
  );
  const ways = [...new Set(results.map(({ way }) => way))];
  const drawn = ways.map((way, at) => {
    const some = results.filter((one) => one.way === way);
    const points = some.map((one) => `${x(Math.log10(one.items))},${y(Math.log10(one.seconds.median))}`);
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour(at)}" stroke-width="2"/>
<path d="M450 ${46 + at * 20}h18" stroke="${colour(at)}" stroke-width="4"/>
<text x="474" y="${50 + at * 20}">${escaped(way)}: slope ${slope(some).toFixed(2)}</text>`;
  });
  const sizes = [...new Set(results.map(({ items }) => items))].map(
    (items) => `<text x="${x(Math.log10(items))}" y="264" text-anchor="middle">${grouped(items)}</text>`,
  );
  const times = results.map(({ seconds }) => seconds.median);
  const seconds = [Math.min(...times), Math.max(...times)].map(
    (time) => `<text x="78" y="${Number(y(Math.log10(time))) + 4}" text-anchor="end">${time.toPrecision(2)} s</text>`,
  );
  const axes = `<path d="M84 36V246H436" fill="none" stroke="currentColor"/><text x="260" y="282" text-anchor="middle">items</text>`;
  return figure('cost against size: seconds over items, both logarithmic', 290, [axes, ...drawn, ...sizes, ...seconds]);
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
  return `<svg viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" font-size="13" fill="currentColor"><title>${escaped(title)}</title>
<text x="0" y="14" font-weight="bold">${escaped(title)}</text>
${drawn.join('\n')}
</svg>`;
}

function colour(at: number): string {
  return COLOURS[at % COLOURS.length] ?? '#888';
}

/** The next number upwards that reads well at the end of a scale. */
function rounded(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 1.5, 2, 3, 4, 5, 6, 8].find((step) => step * power >= value) ?? 10) * power;
}

/** A number in groups of three, whole from ten on. */
export function grouped(value: number): string {
  return value < 10 && !Number.isInteger(value) ? value.toFixed(1) : Math.round(value).toLocaleString('en-GB');
}

export function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
