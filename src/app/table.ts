import Table from 'cli-table3';
import type { Session } from './session.ts';

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

/** A table for people. Columns named in `right` hold numbers. */
export function table(
  session: Pick<Session, 'colours'>,
  head: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly string[] = [],
): string {
  const drawn = new Table({
    head: head.map((name) => session.colours.dim(name)),
    colAligns: head.map((name) => (right.includes(name) ? 'right' : 'left')),
    chars: BARE,
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [] },
  });
  drawn.push(...rows.map((row) => [...row]));
  return drawn.toString().replaceAll(/[ \t]+$/gm, '');
}
