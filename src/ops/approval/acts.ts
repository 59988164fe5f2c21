import type { ApprovalKind } from '../../kernel/approval.ts';
import { OnceperError } from '../../kernel/error.ts';
import type { Act } from './act.ts';
import { adjustment } from './adjustment.ts';
import { backfill } from './backfill.ts';
import { resolve, retryDead } from './effect.ts';
import { heldRun } from './held-run.ts';
import { releaseHold } from './hold.ts';
import { skip } from './skip.ts';
import { takeover } from './takeover.ts';

/** Everything that is done only with an approval. A new one is added here and nowhere else. */
const ACTS: readonly Act[] = [heldRun, backfill, takeover, resolve, retryDead, releaseHold, skip, adjustment];

/** The act of a kind; throws OnceperError `unknown_act` for a request that a later release stored. */
export function actOf(kind: ApprovalKind): Act {
  const act = ACTS.find(({ kinds }) => kinds.includes(kind));
  if (act !== undefined) return act;
  throw new OnceperError({
    code: 'unknown_act',
    message: `this release can't do what a request of kind ${kind} asks for`,
    remedy: 'use the release that stored it, or one after it',
    at: kind,
  });
}
