import { webhookDestination } from '../../kernel/destination.ts';
import { NO_CURRENCY } from '../../kernel/effect-number.ts';
import type { EffectSelect } from '../../kernel/effect-select.ts';
import type { Audience, JobContext } from '../job.ts';
import { jobId } from './job-id.ts';

/**
 * What is told of a settlement that closed: one effect a receiver, `settlement:2026-09:accounting:XXX:completed`, whose body is
 * a CloudEvents 1.0 event in its JSON form, of type `settlement.completed`. It names the document, its totals in minor units
 * and its hash, and no merchant. Each waits for the nearest earlier one to the same receiver, so that a receiver learns of the
 * periods in their order.
 */
export function completed(context: JobContext, { receivers, source }: Audience): EffectSelect {
  return {
    isOrdered: true,
    text: `select e.key || e.suffix as number, e.receiver as subject, 'completed' as effect, e.destination,
                  array(select before.key || e.suffix
                          from settlement.document before
                          join settlement.period earlier on earlier.period = before.period
                         where earlier.starts < e.starts and before.key = '${jobId}:' || before.period
                         order by earlier.starts desc) as waits_for,
                  jsonb_build_object(
                    'specversion', '1.0', 'id', e.key || e.suffix, 'source', $4::text,
                    'type', '${jobId}.completed', 'subject', e.key,
                    'time', to_char(e.closed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                    'datacontenttype', 'application/json',
                    'data', jsonb_build_object('key', e.key, 'period', e.period, 'hash', e.hash,
                                               'document', jsonb_build_object('id', e.id, 'totals', e.totals)))::text as body
             from (select d.*, own.starts, w.receiver, w.destination, ':' || w.receiver || ':${NO_CURRENCY}:completed' as suffix
                     from settlement.document d
                     join settlement.period own on own.period = d.period
                    cross join unnest($2::text[], $3::text[]) as w (receiver, destination)
                    where d.key = $1) e`,
    values: [context.key, receivers, receivers.map(webhookDestination), source],
  };
}
