import type { Met } from './run-sequence.ts';

/** Answers that so many sequences can't miss; without them the model would agree about nothing. */
const MUST_MEET = [
  ...['admitted', 'in_progress', 'duplicate', 'conflict', 'held', 'deferred', 'refused'].map((one) => `open ${one}`),
  ...['granted', 'busy', 'superseded', 'done', 'failed', 'refused'].map((one) => `claim ${one}`),
  ...['performed', 'already_done', 'lease_lost', 'crashed'].map((one) => `slice ${one}`),
  ...['done', 'slices_left', 'lease_lost'].map((one) => `close ${one}`),
  ...['again', 'exhausted', 'moved_on'].map((one) => `end ${one}`),
  ...['stopped'].map((one) => `cancel ${one}`),
  ...['stopped', 'slices_finished'].map((one) => `skip ${one}`),
  'release released',
  'renew renewed',
];

/** Of those, the answers that a few hundred sequences of six commands can't miss either: each is two or three commands away. */
const MUST_MEET_SOON = [
  ...['admitted', 'in_progress', 'held', 'deferred', 'refused'].map((one) => `open ${one}`),
  'claim granted',
  'slice performed',
];

/** Those of them that a plan's sequences never came across: of all, or of those that a short run must meet. */
export function unmetOf(met: Met, run: 'short' | 'long'): readonly string[] {
  return (run === 'long' ? MUST_MEET : MUST_MEET_SOON).filter((one) => !met.has(one));
}
