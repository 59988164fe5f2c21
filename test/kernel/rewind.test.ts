import { expect, test } from 'vitest';
import { rewindReason } from '../../src/kernel/rewind.ts';

const remembered = { systemIdentifier: '7', timeline: 1, epoch: '10', wal: '900' };

test('a database that has gone on is the one that was remembered', () => {
  expect(rewindReason(remembered, remembered)).toBeNull();
  expect(rewindReason(remembered, { ...remembered, epoch: '11', wal: '1000' })).toBeNull();
});

test.each([
  ['another cluster', { systemIdentifier: '8' }],
  ['another timeline', { timeline: 2 }],
  ['a lower epoch', { epoch: '9' }],
  ['a shorter write-ahead log', { wal: '899' }],
])('%s is a rewind', (_what, change) => {
  expect(rewindReason(remembered, { ...remembered, ...change })).not.toBeNull();
});

test('where the write-ahead log ended is compared only where both sides know it', () => {
  const { wal: _, ...outside } = remembered;
  expect(rewindReason(outside, { ...remembered, wal: '1' })).toBeNull();
  expect(rewindReason(remembered, outside)).toBeNull();
});
