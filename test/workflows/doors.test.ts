import { test } from 'vitest';
import { closeByEveryDoor, useDoors } from './doors.ts';

/** test/long/closing-doors.test.ts has the other samples. */
const samples = ['skipping'] as const;
useDoors(samples);

test.each(samples)(
  'by name, by backfill, by the check, by the schedule’s catch-up and by a resumed schedule a period has one key and one pair of bounds: %s',
  (sample) => closeByEveryDoor(sample),
  120_000,
);
