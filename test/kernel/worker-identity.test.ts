import { expect, test } from 'vitest';
import { announcedIn, workerIdentity } from '../../src/kernel/worker-identity.ts';

test('what a worker announces is read again, whatever its release is called', () => {
  const worker = { release: '2026.12 rc 1', jobs: ['interest', 'settlement'] };
  expect(announcedIn(workerIdentity('12@host', worker))).toEqual({ ...worker, release: '2026.12_rc_1' });
  expect(announcedIn(workerIdentity('12@host', { release: 'dev', jobs: [] }))).toEqual({ release: 'dev', jobs: [] });
});

test.each(['12@host', '', '12@host release=dev', '12@host release=a jobs=b; drop'])(
  '%j announces nothing',
  (identity) => {
    expect(announcedIn(identity)).toBeNull();
  },
);
