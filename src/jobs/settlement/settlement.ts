import type { Tx } from '../../kernel/sql.ts';
import type { GrantedContext, Job, Performed, SliceRange } from '../job.ts';
import { adjusting } from './adjustment.ts';
import { close } from './close.ts';
import { completed } from './completed.ts';
import { findHolds, listHolds } from './holds.ts';
import { inTransit } from './in-transit.ts';
import { inspect } from './inspect.ts';
import { jobId } from './job-id.ts';
import { ledgerGaps } from './ledger-gaps.ts';
import { estimate } from './line.ts';
import { checkOverrides } from './overrides.ts';
import { parseParameters } from './parameters.ts';
import { payoutsOf } from './payout.ts';
import { preparePeriods, readPeriod } from './period-row.ts';
import { plan } from './plan.ts';
import { releaseHold } from './release.ts';
import { seal } from './seal.ts';
import { settleEffects } from './settle-effects.ts';
import { skip } from './skip.ts';
import { settleSlice } from './slice.ts';

/**
 * The month-end settlement of merchants: every transaction of a sealed period is settled once, every payable merchant gets
 * one payout per currency, what is not paid is carried into the next period, and one document says so. A payout that fails or
 * comes back is held until a person releases it to a later period.
 */
export function createSettlementJob(): Job {
  return {
    id: jobId,
    needs: 'previous',
    parseParameters,
    checkOverrides,
    preparePeriods,
    inspect,
    estimate,
    seal,
    plan,
    perform,
    close,
    completed,
    settleEffects,
    ledgerGaps,
    inTransit,
    skip,
    adjusting,
    holds: { list: listHolds, find: findHolds, release: releaseHold },
  };
}

/** A slice: lines, postings and result in one statement; the payouts derive from the stored lines. */
async function perform(tx: Tx, context: GrantedContext, slice: SliceRange): Promise<Performed> {
  const period = await readPeriod(tx, context.period);
  return { result: await settleSlice(tx, context, period, slice), effects: payoutsOf(context, slice) };
}
