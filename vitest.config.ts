import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

/** Tests of pure code: they start in a moment and need no server. */
const UNIT = ['test/kernel/**/*.test.ts', 'test/architecture/**/*.test.ts'];

export default defineConfig({
  test: {
    reporters: ['default', new ClosingLine()],
    // One worker is vitest's choice on two cores, and most of a test here is waiting for a server.
    maxWorkers: 2,
    // Starting the servers may mean downloading the Temporal CLI first, and stopping them flushes to disk.
    teardownTimeout: 30_000,
    projects: [
      { test: { name: 'unit', include: UNIT } },
      {
        test: {
          name: 'servers',
          include: ['test/**/*.test.ts'],
          exclude: [...UNIT, 'test/long/**'],
          globalSetup: ['test/support/servers.ts'],
          // Each file is a process of its own: Temporal's runtime and signal handlers belong to a process.
          pool: 'forks',
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
