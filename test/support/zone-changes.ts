import type { Tx } from '../../src/kernel/sql.ts';
import type { Transition } from '../../src/kernel/zone-clock.ts';

/**
 * Makes the server of a test's own database answer with these changes of whatever zone it is asked about: as if its files of time
 * zones had been replaced by a release that says so.
 */
export async function plantChanges(tx: Tx, changes: readonly Transition[]): Promise<void> {
  const [seconds, offsets] = [changes.map(({ at }) => at), changes.map(({ offset }) => offset)];
  await tx.query(
    `create or replace function onceper.zone_changes(zone text, since timestamptz, until timestamptz)
     returns table (at bigint, ahead integer) language sql stable as $$
       select at, ahead from unnest('{${seconds.join()}}'::int8[], '{${offsets.join()}}'::int4[]) as c (at, ahead) order by at
     $$`,
  );
}
