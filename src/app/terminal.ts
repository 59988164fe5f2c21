import { randomInt } from 'node:crypto';
import picocolors from 'picocolors';
import { visible, visibleLine } from '../kernel/visible.ts';

/*
 * The terminal's door. Whatever a command prints goes through `shown`, which writes out every character that a terminal would
 * obey. Our own colours pass, since they carry a mark that is drawn anew for each process: text of others can't know it.
 */
const MARK = Array.from({ length: 3 }, () => String(randomInt(1_000, 10_000))).join(';');
const ESC = '\u001b';
/** A colour of ours on its way to the door. The mark comes first, so that a table gives it no width and takes it for no colour. */
const PAINTED = new RegExp(`(${ESC}\\[${MARK};\\d+m)`);

export type Colours = Readonly<Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', (text: string) => string>>;

/** Colours for text of ours; what they are given is written out first. */
export function colours(enabled: boolean): Colours {
  const plain = picocolors.createColors(enabled);
  const painter = (name: keyof Colours) => (text: string) =>
    plain[name](written(text, visible)).replaceAll(new RegExp(`${ESC}\\[(\\d+)m`, 'g'), `${ESC}[${MARK};$1m`);
  return {
    bold: painter('bold'),
    dim: painter('dim'),
    red: painter('red'),
    green: painter('green'),
    yellow: painter('yellow'),
    cyan: painter('cyan'),
  };
}

/** What a terminal may get: only our colours are obeyed, and newlines and tabs. */
export function shown(text: string): string {
  return written(text, visible).replaceAll(`${ESC}[${MARK};`, `${ESC}[`);
}

/** A text on its way to another process, whose mark is another: what is written, and the numbers of our colours between. */
export type Parts = readonly (string | number)[];

/** Takes a text apart, so that our colours are told from what is written by their kind and by nothing that others could write. */
export function partsOf(text: string): Parts {
  return text
    .split(PAINTED)
    .filter((part) => part !== '')
    .map((part) => (PAINTED.test(part) ? Number.parseInt(part.slice(part.lastIndexOf(';') + 1), 10) : visible(part)));
}

/** Puts a text together again under this process's mark; what came as text paints nothing. */
export function textOfParts(parts: Parts): string {
  return parts
    .map((part) => (typeof part === 'string' ? visible(part) : COLOURS.has(part) ? `${ESC}[${MARK};${part}m` : ''))
    .join('');
}

/** What `colours` paints with: bold, dim, red, green, yellow, cyan, and their ends. */
const COLOURS: ReadonlySet<number> = new Set([1, 2, 22, 31, 32, 33, 36, 39]);

/** Text that takes one line, whatever is in it. */
export function oneLine(text: string): string {
  return written(text, visibleLine);
}

/** Lines of ours, in which text of others begins no other. */
export function linesOf(lines: readonly string[]): string {
  return lines.map(oneLine).join('\n');
}

function written(text: string, how: (part: string) => string): string {
  return text
    .split(PAINTED)
    .map((part) => (PAINTED.test(part) ? part : how(part)))
    .join('');
}
