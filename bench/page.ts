import type { Spread } from './figures.ts';
import type { About } from './peer.ts';
import { bars, curves, escaped, grouped } from './plots.ts';
import type { Result, Section } from './section.ts';

/** What the run was made on. */
export interface Machine {
  readonly cores: number;
  readonly processor: string;
  readonly memoryGiB: number;
  readonly system: string;
  readonly node: string;
  readonly postgres: string;
  /** Of the last minute, before and after. */
  readonly loadBefore: number;
  readonly loadAfter: number;
}

/** A peer with figures. */
export interface Contestant extends About {
  readonly versions: Readonly<Record<string, string>>;
  readonly node: string;
}

/** All that a run found, as results.json holds it. */
export interface Report {
  readonly startedAt: string;
  readonly isQuick: boolean;
  readonly machine: Machine;
  readonly contestants: readonly Contestant[];
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
  readonly sections: readonly Pick<Section, 'name' | 'work' | 'floor'>[];
  readonly results: readonly Result[];
}

const STYLE = `:root{color-scheme:light dark}
body{font:15px/1.45 sans-serif;margin:2em auto;max-width:62em;padding:0 1em;color:CanvasText;background:Canvas}
table{border-collapse:collapse}td,th{padding:.25em .8em;text-align:right;vertical-align:top;border-bottom:1px solid color-mix(in srgb,CanvasText 20%,transparent)}
td{white-space:nowrap}th:first-child,td:first-child,.words td,.words th{text-align:left;white-space:normal}svg{max-width:100%;height:auto;display:block;margin:1em 0}`;

/** The report as one page without scripts: the machine, each section's table and plots, what the peers are, and who is missing. */
export function pageOf(report: Report): string {
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Onceper: benchmarks</title>
<style>${STYLE}</style>
<h1>Benchmarks</h1>
<p>${escaped(conditionsOf(report))} Medians; in brackets the least and the most of the rounds. Absolute rates move with the machine: read the ratios, which are of one round each.</p>
${skippedOf(report)}
${report.sections.map((section) => sectionOf(section, report.results)).join('\n')}
${contestantsOf(report)}
</html>
`;
}

/** The machine in a sentence or two. */
export function conditionsOf({ machine, startedAt, isQuick }: Report): string {
  const load = `load ${machine.loadBefore.toFixed(1)} before and ${machine.loadAfter.toFixed(1)} after`;
  return `${isQuick ? 'A quick run' : 'A run'} of ${startedAt} on ${machine.cores} cores (${machine.processor}), ${machine.memoryGiB} GiB of memory, ${machine.system}, Node ${machine.node}, PostgreSQL ${machine.postgres} as its defaults are, everything on this machine; ${load}.`;
}

function skippedOf({ skipped }: Report): string {
  if (skipped.length === 0) return '';
  return `<h2>Not measured</h2>
<ul>${skipped.map(({ name, reason }) => `<li><b>${escaped(name)}</b>: ${escaped(reason)}`).join('\n')}</ul>`;
}

function sectionOf({ name, work, floor }: Report['sections'][number], all: readonly Result[]): string {
  const results = all.filter(({ section }) => section === name);
  const ways = [...new Set(results.map(({ way }) => way))];
  const largest = ways.flatMap((way) => results.filter((one) => one.way === way).slice(-1));
  const rows = largest.map(
    (one) =>
      `<tr><td>${escaped(one.way)}<td>${written(one.perSecond, 0)}<td>${written(one.walPerItem, 0)}<td>${written(one.ratio, 2)}<td>${grouped(one.items)}<td>${one.rounds}`,
  );
  const hasSizes = results.length > largest.length;
  return `<h2>${escaped(name)}</h2>
<p>${escaped(work)}.</p>
<table><tr><th>way<th>items/s<th>WAL, bytes an item<th>ratio to ${escaped(floor)}<th>items a round<th>rounds
${rows.join('\n')}</table>
${bars('items a second', 'items/s', largest, ({ perSecond }) => perSecond)}
${bars('write-ahead log of an item', 'bytes', largest, ({ walPerItem }) => walPerItem)}
${hasSizes ? curves(results) : ''}`;
}

function contestantsOf({ contestants }: Report): string {
  if (contestants.length === 0) return '';
  const rows = contestants.map((one) => {
    const versions = Object.entries(one.versions).map(([name, version]) =>
      name === 'server' ? version : `${name} ${version}`,
    );
    const pages = one.documentation.map(
      (page) => `<a href="${escaped(page)}">${escaped(page.replace('https://', ''))}</a>`,
    );
    return `<tr><td>${escaped(one.name)}<br>${escaped([...versions, `Node ${one.node}`].join(', '))}<td>${escaped(one.guarantee)}<td>${escaped(one.again)}<td>${escaped(one.settings)}<br>${pages.join(', ')}`;
  });
  return `<h2>What the peers are</h2>
<table class="words"><tr><th>peer<th>what it guarantees for this work<th>who asks again is told<th>how it is set up
${rows.join('\n')}</table>`;
}

function written({ median, least, most }: Spread, digits: number): string {
  // A ratio of 0.00 would say nothing.
  const shown = digits > 0 && median < 0.1 ? digits + 2 : digits;
  const of = (value: number) => (digits === 0 ? grouped(Math.round(value)) : value.toFixed(shown));
  return `${of(median)} (${of(least)}–${of(most)})`;
}
