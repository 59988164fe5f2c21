import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The folder of package.json above this file: the checkout, or the installed package. */
export function projectFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
