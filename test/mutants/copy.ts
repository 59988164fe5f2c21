import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Edit } from './mutations.ts';

const ROOT = join(import.meta.dirname, '../..');

/** A throw-away copy of the checkout as it stands, what is not committed included; its node_modules is a link. */
export interface Copy {
  readonly folder: string;
  /** Makes the edits, and returns how to undo them. Throws where an edit's place is not there exactly once. */
  apply(edits: readonly Edit[]): () => void;
  remove(): void;
}

export function copyCheckout(): Copy {
  const folder = mkdtempSync(join(tmpdir(), 'onceper-mutants-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  for (const file of listed.split('\0').filter(isNeeded)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    // What git still lists and nobody finds any more was deleted a moment ago.
    cpSync(join(ROOT, file), join(folder, file), { force: true, errorOnExist: false });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return {
    folder,
    apply(edits) {
      const before = new Map<string, string>();
      const undo = () => {
        for (const [file, text] of before) writeFileSync(file, text);
      };
      try {
        for (const edit of edits) applyOne(folder, edit, before);
      } catch (error) {
        undo();
        throw error;
      }
      return undo;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const NEEDED = /^(src|activities|workflows|migrations|rules|test|bin)\/|^[^/]+\.(ts|json)$/;
const isNeeded = (file: string) => NEEDED.test(file);

function applyOne(folder: string, edit: Edit, before: Map<string, string>): void {
  const file = join(folder, edit.file);
  const text = readFileSync(file, 'utf8');
  if (!before.has(file)) before.set(file, text);
  writeFileSync(file, mutate(text, edit));
}

/** The file's text with the bug in it. Throws where the edit's place is not there exactly once, or changes nothing. */
export function mutate(text: string, { file, find, replace }: Edit): string {
  const places = text.split(find).length - 1;
  if (places !== 1) throw new Error(`${file} has ${places} places where the mutation expects one: ${find}`);
  if (find === replace) throw new Error(`${file}: the mutation changes nothing: ${find}`);
  return text.replace(find, () => replace);
}
