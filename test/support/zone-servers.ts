import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { inject } from 'vitest';
import { databaseUser } from '../../src/embedded/database-user.ts';
import { freePort } from '../../src/embedded/ports.ts';
import { startPostgres } from '../../src/embedded/postgres.ts';
import { postgresBinaries } from '../../src/embedded/postgres-binaries.ts';
import { startTemporal } from '../../src/embedded/temporal.ts';
import type { Transition } from '../../src/kernel/zone-clock.ts';

/** A Temporal server whose file of a zone has these changes; its namespace is `default`. */
export function temporalWithZone(zone: string, changes: readonly Transition[]) {
  return inFolder(async (folder) => {
    writeZone(folder, zone, changes);
    return startTemporal({
      cli: inject('temporalCli'),
      port: await freePort(),
      uiPort: null,
      databaseFile: null,
      namespace: 'default',
      logFile: path.join(folder, 'temporal.log'),
      env: { ZONEINFO: folder },
    });
  });
}

/** A PostgreSQL server, without a schema, whose file of a zone has these changes: a copy of the embedded one. */
export function postgresWithZone(zone: string, changes: readonly Transition[]) {
  return inFolder(async (folder) => {
    const installed = postgresBinaries(databaseUser());
    const copy = path.join(folder, 'native');
    cpSync(path.dirname(path.dirname(installed.postgres)), copy, { recursive: true, verbatimSymlinks: true });
    writeZone(path.join(copy, 'share/postgresql/timezone'), zone, changes);
    const [postgres, initdb] = [path.join(copy, 'bin/postgres'), path.join(copy, 'bin/initdb')];
    const binaries = { ...installed, postgres, initdb };
    return startPostgres({ dir: path.join(folder, 'data'), port: await freePort(), durable: false, binaries });
  });
}

/** Starts a server in a new folder, which goes with it. */
async function inFolder<Server extends { readonly stop: () => Promise<void> }>(
  start: (folder: string) => Promise<Server>,
): Promise<{ readonly server: Server; readonly stop: () => Promise<void> }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'onceper-zone-'));
  // The database's user must get in when we are root.
  chmodSync(folder, 0o755);
  const server = await start(folder);
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true });
  };
  return { server, stop };
}

function writeZone(folder: string, zone: string, changes: readonly Transition[]): void {
  const file = path.join(folder, zone);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, zoneFile(changes));
}

const LAST_OF_32_BITS = 2 ** 31 - 1;

/** A compiled zone file of RFC 9636, version 1. */
function zoneFile(changes: readonly Transition[]): Buffer {
  const written = changes.filter(({ at }) => at <= LAST_OF_32_BITS);
  const offsets = [...new Set(written.map(({ offset }) => offset))];
  const header = Buffer.alloc(44);
  header.write('TZif');
  // How many changes, kinds of local time, and letters of their abbreviations.
  for (const [index, count] of [written.length, offsets.length, 4].entries())
    header.writeInt32BE(count, 32 + 4 * index);
  const instants = Buffer.alloc(4 * written.length);
  for (const [index, { at }] of written.entries()) instants.writeInt32BE(at, 4 * index);
  const kinds = Buffer.from(written.map(({ offset }) => offsets.indexOf(offset)));
  const times = Buffer.alloc(6 * offsets.length);
  for (const [index, offset] of offsets.entries()) times.writeInt32BE(offset, 6 * index);
  return Buffer.concat([header, instants, kinds, times, Buffer.from('LMT\0')]);
}
