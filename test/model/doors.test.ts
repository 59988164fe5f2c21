import { test } from 'vitest';
import { runDoors } from './doors.ts';

test('of fifty starts of one period through five doors one is admitted and all others name it, twenty rounds', async () => {
  await runDoors(20);
}, 60_000);
