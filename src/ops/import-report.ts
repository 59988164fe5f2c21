import type { Imported } from '../jobs/settlement/import/imported.ts';
import type { Held, KnownFrom } from '../jobs/settlement/import/repeats.ts';

/** A file can be known from many: the largest parts show where it comes from. */
const FILES_SHOWN = 5;

/** What became of an import, a line each, for people. */
export function importReport(imported: Imported): readonly string[] {
  const { file, rows, added, known, repeats, late, refusedTotal } = imported;
  switch (imported.kind) {
    case 'refused':
      return [`${file}: refused, nothing of its ${rows} rows was stored; ${refusedTotal} of them are wrong`];
    case 'held':
      return heldLines(file, imported.held);
    case 'imported': {
      const twice = repeats > 0 ? ` (${repeats} repeat a line of the file and count once)` : '';
      return [
        `${file}: ${rows} rows, ${added} added, ${known} known${twice}, ${late} late`,
        ...fromLines(imported.knownFrom),
      ];
    }
  }
}

function heldLines(file: string, { repeats, of, from, samples }: Held): readonly string[] {
  return [
    `${file}: held, nothing was stored; ${repeats} of the ${of} rows that it would add equal stored ones in everything but their ids`,
    ...fromLines(from),
    ...samples.map(({ line, id, storedId, file: stored }) => {
      return `  line ${line}${id === null ? '' : `, id ${id}`}, equals id ${storedId} of ${named(stored)}`;
    }),
    'say which it is: --as-known stores only what is not stored yet, --as-new stores all rows as transactions of their own',
  ];
}

function fromLines(from: readonly KnownFrom[]): readonly string[] {
  const shown = from.slice(0, FILES_SHOWN).map(({ file, importedAt, rows }) => {
    return `  ${rows} known from ${named(file)}${importedAt === null ? '' : `, imported ${importedAt}`}`;
  });
  return from.length > shown.length ? [...shown, `  and from ${from.length - shown.length} more`] : shown;
}

/** A row that a hand stored has no file. */
function named(file: string): string {
  return file === '' ? 'no import on record' : file;
}
