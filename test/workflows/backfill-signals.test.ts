import { test } from 'vitest';
import { useBackfilling } from './backfilling.ts';
import { decideAndWake } from './deciding.ts';

const people = useBackfilling();

/** test/long/backfill-signals.test.ts sends 200. */
test('decisions and signals while the dispatcher continues as new: each decision counts once, and none is lost', async () => {
  await decideAndWake(people, 12);
}, 180_000);
