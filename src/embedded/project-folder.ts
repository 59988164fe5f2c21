import { existsSync } from 'node:fs';
import path from 'node:path';

/**
 * The project that a command typed in `from` is about: the nearest folder upwards that has a `.onceper/`, else the nearest
 * with a package.json, else `from` itself. So the commands work in every sub-folder.
 */
export function projectFolder(from: string): string {
  return nearestWith('.onceper', from) ?? nearestWith('package.json', from) ?? path.resolve(from);
}

function nearestWith(name: string, from: string): string | null {
  for (let folder = path.resolve(from); ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, name))) return folder;
    if (folder === path.dirname(folder)) return null;
  }
}
