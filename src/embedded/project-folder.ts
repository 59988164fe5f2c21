import { existsSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/** The folder of package.json above this file: the checkout, or the installed package. */
export function packageFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}

/**
 * The folder whose `.onceper/` holds the embedded servers. In a checkout it is the checkout. An installed package lies below
 * node_modules, which every install may erase; the data then belong to the project that is typed in: the nearest folder upwards
 * that has such data, else the nearest with a package.json, else where we are.
 */
export function projectFolder(installed: string = packageFolder(), cwd: string = process.cwd()): string {
  if (!isBelowModules(installed)) return installed;
  const folders = upwards(cwd).filter((folder) => !isBelowModules(folder));
  return (
    folders.find((folder) => existsSync(join(folder, '.onceper'))) ??
    folders.find((folder) => existsSync(join(folder, 'package.json'))) ??
    folders[0] ??
    cwd
  );
}

function isBelowModules(folder: string): boolean {
  return folder.split(sep).includes('node_modules');
}

function upwards(folder: string): string[] {
  const above = dirname(folder);
  return above === folder ? [folder] : [folder, ...upwards(above)];
}
