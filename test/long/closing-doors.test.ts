import { test } from 'vitest';
import { closeByEveryDoor, DOOR_SAMPLES, useDoors } from '../workflows/doors.ts';

const samples = Object.keys(DOOR_SAMPLES) as (keyof typeof DOOR_SAMPLES)[];
useDoors(samples);

test.each(samples)(
  'by every door a period has one key and one pair of bounds: %s',
  (sample) => closeByEveryDoor(sample),
  300_000,
);
