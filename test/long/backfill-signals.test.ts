import { expect, test } from 'vitest';
import { useBackfilling } from '../workflows/backfilling.ts';
import { decideAndWake } from '../workflows/deciding.ts';

const people = useBackfilling();

test('200 decisions and signals while the dispatcher continues as new: each decision counts once, and none is lost', async () => {
  expect(await decideAndWake(people, 60)).toBeGreaterThanOrEqual(200);
}, 300_000);
