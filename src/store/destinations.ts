import { ACCOUNTS, type ProbeTerms, type Said } from '../kernel/destination.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { IS_ITS_TURN, MOVES_MONEY } from './outbox-conditions.ts';

/** A destination as it stands. Of an open one the last six are null, and nothing waits for it. */
export interface DestinationStanding {
  readonly name: string;
  readonly state: 'open' | 'paused';
  readonly since: Instant;
  /** How long ago that was, milliseconds. */
  readonly ageMs: number;
  readonly code: string | null;
  readonly status: number | null;
  readonly probes: number;
  readonly probeAt: Instant | null;
}

/** A condition of a statement, evaluated once: the counterparty of money is paused. */
export const ACCOUNTS_PAUSED = `exists (select from onceper.destination where name = '${ACCOUNTS}' and state = 'paused')`;

/** Every destination that can pause, by name. */
export async function readDestinations(tx: Tx): Promise<DestinationStanding[]> {
  const { rows } = await tx.query<DestinationStanding>(
    `select name, state, since, (extract(epoch from clock_timestamp() - since) * 1000)::float8 as "ageMs", code, status, probes,
            probe_at as "probeAt"
       from onceper.destination order by name`,
  );
  return rows;
}

/** The pause of the counterparty of money, or null while it is open. */
export async function readPause(tx: Tx): Promise<DestinationStanding | null> {
  const all = await readDestinations(tx);
  return all.find(({ name, state }) => name === ACCOUNTS && state === 'paused') ?? null;
}

/** How many effects of delivering keys, which move money, wait for a paused destination. Walks them: for a person's question. */
export async function countPausedEffects(tx: Tx): Promise<number> {
  const { rows } = await tx.query<{ count: number }>(
    `select count(*)::int4 as count
       from onceper.action a
       join onceper.outbox on outbox.key = a.key
      where a.delivering and outbox.state in ('pending', 'sending', 'unknown', 'pending_external')
        and ${MOVES_MONEY} and ${IS_ITS_TURN}`,
  );
  return rows[0]?.count ?? 0;
}

/** What became of a destination by what its counterparty said; null where it stands as before. */
export type Moved = 'paused' | 'resumed' | null;

/**
 * Applies what was said of the counterparty of money to its row; call it last in the transaction that records the answers. The
 * first pause keeps its instant; later answers about us only change the code that is shown.
 */
export async function applySaid(tx: Tx, said: Exclude<Said, null>, probe: ProbeTerms): Promise<Moved> {
  switch (said.kind) {
    case 'pauses':
      if (await pause(tx, said, probe)) return 'paused';
      await noteAnswer(tx, said);
      return null;
    case 'opens':
      return (await openDestination(tx, ACCOUNTS)) ? 'resumed' : null;
    case 'try_again':
      await probeAtOnce(tx);
      return null;
  }
}

async function pause(
  tx: Tx,
  { code, status }: Extract<Said, { kind: 'pauses' }>,
  { firstMs }: ProbeTerms,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `insert into onceper.destination as d (name, state, code, status, probe_at)
     values ($1, 'paused', $2, $3, clock_timestamp() + $4 * interval '1 millisecond')
         on conflict (name) do update
        set state = 'paused', code = excluded.code, status = excluded.status, since = clock_timestamp(), probes = 0,
            probe_at = excluded.probe_at
      where d.state <> 'paused'`,
    [ACCOUNTS, code, status, firstMs],
  );
  return rowCount === 1;
}

async function noteAnswer(tx: Tx, { code, status }: Extract<Said, { kind: 'pauses' }>): Promise<void> {
  await tx.query(
    `update onceper.destination set code = $2, status = $3
      where name = $1 and state = 'paused' and (code <> $2 or status <> $3)`,
    [ACCOUNTS, code, status],
  );
}

/** Opens a paused destination; false where it is open or unknown. */
export async function openDestination(tx: Tx, name: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update onceper.destination
        set state = 'open', since = clock_timestamp(), code = null, status = null, probes = 0, probe_at = null
      where name = $1 and state = 'paused'`,
    [name],
  );
  return rowCount === 1;
}

async function probeAtOnce(tx: Tx): Promise<void> {
  await tx.query(
    `update onceper.destination set probe_at = clock_timestamp()
      where name = $1 and state = 'paused' and probe_at > clock_timestamp()`,
    [ACCOUNTS],
  );
}
