import Table from 'cli-table3';
import type { Session } from './session.ts';
import { linesOf, oneLine } from './terminal.ts';

/** Only spaces between columns: what is printed can be cut and pasted, and read by `awk`. */
const BARE = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '  ',
} as const;

/** A cell of one line, or of several of ours. */
export type Cell = string | readonly string[];

/** A table for people. Columns named in `right` hold numbers. What others wrote stays in its line and its column. */
export function table(
  session: Pick<Session, 'colours'>,
  head: readonly string[],
  rows: readonly (readonly Cell[])[],
  right: readonly string[] = [],
): string {
  const drawn = new Table({
    head: head.map((name) => session.colours.dim(name)),
    colAligns: head.map((name) => (right.includes(name) ? 'right' : 'left')),
    chars: BARE,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  drawn.push(...rows.map((row) => row.map((cell) => (typeof cell === 'string' ? oneLine(cell) : linesOf(cell)))));
  return drawn.toString().replaceAll(/[ \t]+$/gm, '');
}
