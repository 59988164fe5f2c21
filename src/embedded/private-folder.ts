import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import { databaseUser } from './database-user.ts';
import { ownerOfData } from './postgres-data.ts';
import { onceperFolder, postgresFolder } from './server-state.ts';

/**
 * Makes the folder of a project's servers, and closes it and its files to everybody else, also those of an earlier release. Where
 * root starts a PostgreSQL the database's own user may pass through to its data, and see nothing on the way.
 */
export function openOnceperFolder(projectDir: string, startsPostgres: boolean): string {
  const folder = onceperFolder(projectDir);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const group = startsPostgres && userInfo().uid === 0 ? groupOf(projectDir) : null;
  for (const each of foldersOfOurs(folder)) {
    if (group !== null) chownSync(each, 0, group);
    chmodSync(each, group === null ? 0o700 : 0o710);
  }
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isFile()) chmodSync(path.join(folder, entry.name), 0o600);
  }
  const lock = path.join(folder, 'lock');
  if (existsSync(lock)) chmodSync(lock, 0o700);
  return folder;
}

function groupOf(projectDir: string): number | null {
  return ownerOfData(postgresFolder(projectDir), databaseUser())?.gid ?? null;
}

/** A demo keeps its servers below the folder of those of `up`: the way to them is closed too. */
function foldersOfOurs(folder: string): string[] {
  const parts = folder.split(path.sep);
  const first = parts.indexOf(path.basename(folder));
  return parts.slice(first).map((_, at) => parts.slice(0, first + at + 1).join(path.sep));
}
