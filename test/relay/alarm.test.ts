import { expect, test } from 'vitest';
import { createAlarm } from '../../src/relay/alarm.ts';

const never = new AbortController().signal;

test('a ring ends the nap, and one that nobody napped through ends the next', async () => {
  const alarm = createAlarm();
  const napping = alarm.nap(60_000, never);
  alarm.ring();
  expect(await napping).toBe(true);
  alarm.ring();
  expect(await alarm.nap(60_000, never)).toBe(true);
  expect(await alarm.nap(1, never)).toBe(false);
});

test('the end of the process ends the nap', async () => {
  const alarm = createAlarm();
  const end = new AbortController();
  const napping = alarm.nap(60_000, end.signal);
  end.abort();
  expect(await napping).toBe(false);
  expect(await alarm.nap(60_000, end.signal)).toBe(false);
});
