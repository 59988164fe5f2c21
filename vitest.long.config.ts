import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

/** What takes minutes to hours: the model's hundred thousand sequences, and races over hundreds of rounds. */
export default defineConfig({
  test: {
    name: 'long',
    reporters: ['default', new ClosingLine()],
    teardownTimeout: 30_000,
    include: ['test/long/**/*.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    pool: 'forks',
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
