import { test } from 'vitest';
import { runDoors } from '../model/doors.ts';

test('of fifty starts of one period through five doors one is admitted and all others name it, two hundred rounds', async () => {
  await runDoors(200);
}, 600_000);
