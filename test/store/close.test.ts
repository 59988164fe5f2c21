import { expect, test } from 'vitest';
import { close, mustClaim, performOne } from '../support/ledger.ts';
import { useTinyKeys } from '../support/tiny-keys.ts';

const tiny = useTinyKeys();

test('a close stores when the period of its key ended, by its rule', async () => {
  const services = tiny.services();
  const grant = await mustClaim(services, { run: await tiny.admitted() });
  for (const slice of grant.slices) await performOne(services, grant, slice, 10_000);
  expect(await close(services, grant)).toMatchObject({ kind: 'done' });
  const { rows } = await tiny.db.query<{ ends: string }>(
    'select period_ends as ends from onceper.action where key = $1',
    [tiny.key],
  );
  expect(rows).toEqual([{ ends: '2021-02-01T00:00:00Z' }]);
});
