import type { EffectInHand } from '../kernel/delivery.ts';
import { ACCOUNTS, type ProbeTerms } from '../kernel/destination.ts';
import type { Position } from '../kernel/rewind.ts';
import type { Tx } from '../kernel/sql.ts';
import { ACCOUNTS_PAUSED } from './destinations.ts';
import { IDENTITY, mustHave } from './epoch.ts';
import { IS_ITS_TURN, MOVES_MONEY } from './outbox-conditions.ts';

/** An effect under a relay's lease. Every later write names its fence; a relay that lost it affects 0 rows. */
export interface TakenEffect extends EffectInHand {
  readonly number: string;
  readonly job: string;
  readonly key: string;
  readonly subject: string;
  readonly destination: string;
  readonly body: string;
  readonly fence: bigint;
  readonly isProbe: boolean;
  /** How often the counterparty gave an old answer about us from memory: as often its key is another one. */
  readonly repeats: number;
}

type TakenRow = (TakenEffect | { readonly number: null }) & Found;
type Found = Position & Pick<Take, 'probeInMs'>;

/** What a take has taken, and who the database was that gave it. */
export interface Take {
  readonly effects: readonly TakenEffect[];
  readonly found: Position;
  /** When the counterparty of money, which is paused, is to be tried with one effect; null while it is open. */
  readonly probeInMs: number | null;
}

/** The rest of a take over `due`; `isProbe` is what it says of the effects. */
const TAKEN = (isProbe: boolean) => `taken as (
     update onceper.outbox o
        set state = case due.state when 'pending' then 'sending' when 'sending' then 'unknown' else due.state end,
            attempts = o.attempts + (due.state = 'pending')::int4,
            lookups = o.lookups + (due.state <> 'pending')::int4,
            first_sent_at = case due.state when 'pending' then coalesce(o.first_sent_at, clock_timestamp()) else o.first_sent_at end,
            last_sent_at = case due.state when 'pending' then clock_timestamp() else o.last_sent_at end,
            fence = o.fence + 1,
            due_at = clock_timestamp() + $2 * interval '1 millisecond'
       from due
      where o.ctid = due.place
     returning o.number, due.job, o.key, o.subject, o.destination, o.body, o.fence, o.attempts, o.lookups as "lookUps",
               due.state as before, o.counterparty_id as "counterpartyId", ${isProbe} as "isProbe",
               case when o.fence = 1 then 0
                    else (select count(*)::int4 from onceper.delivery d where d.number = o.number and d.outcome = 'repeated')
               end as repeats,
               (extract(epoch from clock_timestamp() - due.period_ends) * 1000)::float8 as "periodEndedAgeMs",
               (extract(epoch from clock_timestamp() - due.first_sent_at) * 1000)::float8 as "firstSentAgeMs",
               (extract(epoch from clock_timestamp() - due.last_sent_at) * 1000)::float8 as "lastSentAgeMs")`;

/**
 * Takes up to `limit` due effects of delivering actions of `jobs`, in one statement and under a lease of `leaseMs`. A pending
 * one becomes `sending`, its try counted before the first byte, whether or not the relay looks it up first; a `sending` past
 * its lease becomes `unknown`, and like the other unfinished ones it is to be looked up, never sent. Rows of another relay's open take are skipped, not waited for; so
 * is an effect that waits for an earlier one of its subject and destination until that has its fate, and all that moves money
 * while its counterparty is paused. The same statement says who the database is, so that whoever takes can tell a rewound one
 * before anything leaves. Throws OnceperError `epoch_missing`.
 */
export async function takeDueEffects(
  tx: Tx,
  options: { readonly limit: number; readonly leaseMs: number; readonly jobs: readonly string[] },
): Promise<Take> {
  // From the delivering actions into (key, due_at): joined on state alone it walks the rows of unfinished actions. The
  // clock is a scalar subquery, read once: as a volatile condition it could not bound the index scan. A row that is locked is
  // found again by its place, an eighth of the take's CPU less than by number; one that was changed after this statement's
  // snapshot has a place that the snapshot does not see, and is left for the next take.
  const { rows } = await tx.query<TakenRow>(
    `with here as materialized (
       select ${IDENTITY}, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text as wal,
              (select (extract(epoch from probe_at - clock_timestamp()) * 1000)::float8
                 from onceper.destination where name = '${ACCOUNTS}') as "probeInMs" from onceper.epoch),
     due as materialized (
       select o.place, a.job, a.period_ends, o.state, o.first_sent_at, o.last_sent_at
         from onceper.action a
        cross join lateral (
              select outbox.ctid as place, outbox.state, outbox.first_sent_at, outbox.last_sent_at
                from onceper.outbox
               where outbox.key = a.key
                 and outbox.state in ('pending', 'sending', 'unknown', 'pending_external')
                 and outbox.due_at <= (select clock_timestamp())
                 and ${IS_ITS_TURN}
                 and not (${ACCOUNTS_PAUSED} and ${MOVES_MONEY})
               order by outbox.due_at
               limit $1
                 for update of outbox skip locked) o
        where a.delivering and a.job = any ($3::text[])
          and not exists (select from onceper.epoch where frozen_at is not null)
        limit $1),
     ${TAKEN(false)}
     select taken.*, here.* from here left join taken on true`,
    [options.limit, options.leaseMs, options.jobs],
    'onceper take due',
  );
  const { systemIdentifier, timeline, epoch, wal, probeInMs } = mustHave(rows[0]);
  return { effects: rows.filter(isTaken), found: { systemIdentifier, timeline, epoch, wal }, probeInMs };
}

/**
 * Takes the one effect with which a paused counterparty is tried, as takeDueEffects takes; null where it is open, not due, or
 * nothing is there to try it with. Of any number of relays one gets the turn, and the next comes after a back-off. A pending one
 * goes first: only a send shows that sends are dealt with. Who was tried is due later than the others, so that no single payout
 * keeps the destination closed.
 */
export async function takeProbe(
  tx: Tx,
  options: { readonly leaseMs: number; readonly jobs: readonly string[]; readonly probe: ProbeTerms },
): Promise<TakenEffect | null> {
  const { rows } = await tx.query<TakenEffect>(
    `with turn as (
       update onceper.destination
          set probes = probes + 1,
              probe_at = clock_timestamp() + least($4, $3 * 2 ^ least(probes + 1, 40)) * interval '1 millisecond'
        where name = '${ACCOUNTS}' and probe_at <= clock_timestamp()
          and not exists (select from onceper.epoch where frozen_at is not null)
       returning name),
     due as materialized (
       select outbox.ctid as place, a.job, a.period_ends, outbox.state, outbox.first_sent_at, outbox.last_sent_at
         from turn
        cross join onceper.action a
         join onceper.outbox on outbox.key = a.key
        where a.delivering and a.job = any ($1::text[])
          and outbox.state in ('pending', 'sending', 'unknown', 'pending_external')
          and outbox.due_at <= (select clock_timestamp())
          and ${IS_ITS_TURN} and ${MOVES_MONEY}
        order by outbox.state <> 'pending', outbox.due_at
        limit 1
          for update of outbox skip locked),
     ${TAKEN(true)}
     select taken.* from taken`,
    [options.jobs, options.leaseMs, options.probe.firstMs, options.probe.capMs],
  );
  return rows[0] ?? null;
}

/** False of the row that says only who the database is, where nothing was taken. */
function isTaken(row: TakenRow): row is TakenEffect & Found {
  return row.number !== null;
}

/**
 * Makes an unknown effect `sending` again after a look-up that allowed it, with its look-up as a delivery, and renews the
 * lease; committed before the first byte leaves. Null when the fence was lost, or when the first send is `windowMs` old or
 * older by the database's clock: then nothing may be sent.
 */
export async function beginResend(
  tx: Tx,
  effect: Pick<TakenEffect, 'number' | 'fence'>,
  options: {
    readonly windowMs: number;
    readonly leaseMs: number;
    readonly requestHash: string;
    readonly status: number | null;
  },
): Promise<{ readonly fence: bigint; readonly attempts: number } | null> {
  const { rows } = await tx.query<{ fence: bigint; attempts: number }>(
    `with resent as (
       update onceper.outbox
          set state = 'sending', attempts = attempts + 1, fence = fence + 1, last_sent_at = clock_timestamp(),
              due_at = clock_timestamp() + $4 * interval '1 millisecond'
        where number = $1 and fence = $2 and state = 'unknown'
          and not exists (select from onceper.epoch where frozen_at is not null)
          and first_sent_at > clock_timestamp() - $3 * interval '1 millisecond'
       returning number, fence, attempts),
     noted as (
       insert into onceper.delivery (number, fence, step, request_hash, outcome, status)
       select number, fence - 1, 'look_up', $5, 'not_found', $6 from resent)
     select fence, attempts from resent`,
    [effect.number, effect.fence, options.windowMs, options.leaseMs, options.requestHash, options.status],
  );
  return rows[0] ?? null;
}

/**
 * Gives back effects that were taken and not begun: due at once, as they were before the take, nothing counted. Only for
 * the relay that knows that it sent nothing under this fence. Returns how many were still held.
 */
export async function releaseTaken(tx: Tx, effects: readonly TakenEffect[]): Promise<number> {
  const { rowCount } = await tx.query(
    `update onceper.outbox o
        set state = case when r.fresh then 'pending' else o.state end,
            attempts = o.attempts - r.fresh::int4,
            lookups = o.lookups - (not r.fresh)::int4,
            first_sent_at = case when r.fresh and o.attempts = 1 then null else o.first_sent_at end,
            last_sent_at = case when r.fresh and o.attempts = 1 then null else o.last_sent_at end,
            due_at = clock_timestamp()
       from unnest($1::text[], $2::int8[], $3::bool[]) as r (number, fence, fresh)
      where o.number = r.number and o.fence = r.fence
        and case when r.fresh then o.state = 'sending' else o.state in ('unknown', 'pending_external') end`,
    [
      effects.map((effect) => effect.number),
      effects.map((effect) => effect.fence),
      effects.map((effect) => effect.before === 'pending'),
    ],
  );
  return rowCount;
}
