import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../embedded/ports.ts';
import { startTemporal } from '../embedded/temporal.ts';
import { findTemporalCli } from '../embedded/temporal-cli.ts';
import type { DrillTools } from './drill.ts';

/** A Temporal of the drill's own, which can be made to forget everything. */
export interface OwnTemporal {
  readonly address: string;
  /** Stops it, deletes its state, and starts it again at the same address: no workflow, schedule or attribute is left. */
  erase(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts it with its state in a file of the drill's folder; for a stage whose `temporalAddress` it then is. */
export async function startOwnTemporal(tools: DrillTools): Promise<OwnTemporal> {
  const { temporalCli } = tools.options;
  const found = await findTemporalCli({ ...temporalCli, onProgress: tools.tell });
  const databaseFile = join(tools.folder, 'temporal.db');
  const port = await freePort();
  const begin = () =>
    startTemporal({
      cli: found.file,
      port,
      uiPort: null,
      databaseFile,
      namespace: 'default',
      logFile: join(tools.folder, 'temporal.log'),
    });
  let server = await begin();
  return {
    address: server.address,
    async erase() {
      await server.stop();
      for (const suffix of ['', '-wal', '-shm']) rmSync(`${databaseFile}${suffix}`, { force: true });
      server = await begin();
    },
    stop: () => server.stop(),
  };
}
