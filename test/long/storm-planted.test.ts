import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Copy, copyCheckout } from '../mutants/copy.ts';
import type { Edit } from '../mutants/mutations.ts';

/** A bug, the smallest storm that meets it, and the invariants of which the checker must find one broken. */
interface Planted {
  readonly name: string;
  readonly edits: readonly Edit[];
  readonly storm: readonly string[];
  readonly broken: readonly string[];
}

const SLOW_SLICES = [
  '--months',
  '2',
  '--merchants',
  '300',
  '--slice',
  '2',
  '--only',
  'the way to the database is slow',
];

const PLANTED: readonly Planted[] = [
  {
    name: 'a relay that does not wait for the document',
    edits: [
      {
        file: 'src/store/outbox-take.ts',
        find: 'where a.delivering and a.job',
        replace: "where (a.delivering or a.state = 'running') and a.job",
      },
    ],
    storm: ['--seed', '2', '--faults', '20', '--seconds', '30', ...SLOW_SLICES],
    broken: ['money moves only after its document'],
  },
  {
    name: 'a payout of twice the amount',
    edits: [
      {
        file: 'src/jobs/settlement/payout.ts',
        find: `'{"amount":"' || e.payout ||`,
        replace: `'{"amount":"' || e.payout * 2 ||`,
      },
    ],
    storm: [
      '--seed',
      '2',
      '--faults',
      '1',
      '--seconds',
      '5',
      '--months',
      '2',
      '--merchants',
      '10',
      '--only',
      'idle sessions ended',
    ],
    broken: ['money moves in the right amount, currency and direction'],
  },
];

let copy: Copy;

beforeAll(() => {
  copy = copyCheckout();
});
afterAll(() => copy.remove());

test.each(PLANTED)('$name is caught by the checker', { timeout: 900_000 }, ({ edits, storm, broken }) => {
  const undo = copy.apply(edits);
  const report = join(copy.folder, 'report.json');
  try {
    const tsx = join(copy.folder, 'node_modules/tsx/dist/cli.mjs');
    const line = [tsx, join(copy.folder, 'test/long/storm/storm.ts'), ...storm, '--report', report];
    spawnSync(process.execPath, line, { cwd: copy.folder, stdio: 'ignore' });
    const { violations } = JSON.parse(readFileSync(report, 'utf8')) as { violations: { invariant: string }[] };
    expect(violations.map(({ invariant }) => invariant)).toEqual(expect.arrayContaining([...broken]));
  } finally {
    undo();
  }
});
