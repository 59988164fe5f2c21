import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../../src');

/** Where an address becomes a connection; the embedded server is on this machine and has just been started. */
const DOORS = ['embedded/postgres.ts', 'store/connection.ts'];

test('every connection to a database asks of its server what the address says', () => {
  const makers = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .filter((file) => /\bconnectionString\b(?!,? ssl)/.test(readFileSync(join(root, file), 'utf8')))
    .toSorted();
  expect(makers).toEqual(DOORS);
  const connecting = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !DOORS.includes(file))
    .map((file) => [file, readFileSync(join(root, file), 'utf8')] as const)
    .filter(([, source]) => /new pg\.(Client|Pool)\(|\bknex\(\{/.test(source));
  expect(connecting.length).toBeGreaterThan(2);
  for (const [file, source] of connecting) {
    // Or as a pool does that was opened so, or with what somebody hands over who is looked at here too.
    const isAsked = /connectionOf\(|pool\.options|config: pg\.ClientConfig/.test(source);
    expect([file, isAsked]).toEqual([file, true]);
  }
});
