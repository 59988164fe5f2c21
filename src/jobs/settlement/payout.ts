import type { Select } from '../../kernel/sql.ts';
import type { GrantedContext, SliceRange } from '../job.ts';

/**
 * The slice's payouts as a select over its lines: number (key:merchant:CUR:payout), subject, effect, destination, body. The
 * body is canonical JSON (RFC 8785: sorted names, no blanks, to_json's escapes are its escapes), with the amount in minor
 * units as text. It depends on the line alone, so it is the same, byte for byte, whenever it is derived again.
 */
export function payoutsOf(context: GrantedContext, slice: SliceRange): Select {
  return {
    text: `select e.number, e.merchant as subject, 'payout' as effect, e.merchant as destination,
                  '{"amount":"' || e.payout || '","currency":"' || e.currency || '","destination":'
                  || to_json(e.merchant) || ',"reference":' || to_json(e.number) || '}' as body
             from (select l.key || ':' || l.merchant || ':' || l.currency || ':payout' as number, l.merchant, l.currency, l.payout
                     from settlement.line l
                    where l.key = $1 and l.merchant between $2 and $3 and l.payout > 0
                    order by l.merchant, l.currency) e`,
    values: [context.key, slice.firstSubject, slice.lastSubject],
  };
}
