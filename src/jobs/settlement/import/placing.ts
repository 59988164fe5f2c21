import type pg from 'pg';
import { Temporal } from 'temporal-polyfill';
import type { StagedRow } from './source-format.ts';

/** The period that takes a row now, and the one of its own date where that takes none any more. */
interface Place {
  readonly period: string;
  readonly lateFrom: string | null;
}

/** Null where no period takes it. */
export type PlaceOf = (row: Pick<StagedRow, 'occurredOn' | 'occurredAt'>) => Place | null;

interface PeriodNow {
  readonly period: string;
  readonly target: string | null;
  readonly startsOn: string;
  readonly endsOn: string;
  readonly startsMs: number;
}

/**
 * Which period takes a row, as things stand now and without a lock: that of its own date while it is open, else the next open
 * one. Dates are placed by the days of the periods, instants by their instants, as `insertTransactions` does.
 */
export async function placesNow(client: pg.ClientBase): Promise<PlaceOf> {
  const { rows } = await client.query<PeriodNow>(
    `select p.period, to_char(p.starts_on, 'YYYY-MM-DD') as "startsOn", to_char(p.ends_on, 'YYYY-MM-DD') as "endsOn",
            (extract(epoch from p.starts) * 1000)::float8 as "startsMs",
            (select n.period from settlement.period n
              where n.state = 'open' and n.starts >= p.starts order by n.starts limit 1) as target
       from settlement.period p
      order by p.starts desc`,
  );
  const byDate = new Map<string, Place | null>();
  return ({ occurredOn, occurredAt }) => {
    if (occurredAt !== null) {
      // A period starts on a whole second, so what is below a millisecond decides nothing.
      const at = Temporal.Instant.from(occurredAt).epochMilliseconds;
      return placeIn(rows.find(({ startsMs }) => startsMs <= at));
    }
    let place = byDate.get(occurredOn);
    if (place === undefined) {
      place = placeIn(rows.find(({ startsOn, endsOn }) => startsOn <= occurredOn && occurredOn < endsOn));
      byDate.set(occurredOn, place);
    }
    return place;
  };
}

function placeIn(own: PeriodNow | undefined): Place | null {
  if (own === undefined || own.target === null) return null;
  return { period: own.target, lateFrom: own.target === own.period ? null : own.period };
}
