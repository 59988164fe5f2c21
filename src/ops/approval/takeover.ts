import { OnceperError } from '../../kernel/error.ts';
import type { Tx } from '../../kernel/sql.ts';
import { type Action, actionByKey } from '../../store/actions.ts';
import { revokeGrant } from '../../store/revoke.ts';
import { knownKey } from '../known-key.ts';
import { type Act, textOf } from './act.ts';

/**
 * Takes a key from a holder whose lease is live, for when a person knows that it will never finish. The execution only ends the
 * lease, by an update that waits for no slice; the ordinary grant follows in a transaction of its own, when the owner's
 * workflow has been started anew, and waits for the slices in flight.
 */
export const takeover: Act = {
  kinds: ['takeover'],
  async plan(tx, _, ask) {
    const { key, job, period, fence, ownerRun, ownerExec, ownerPass, ruleVersion } = await held(tx, textOf(ask, 'key'));
    const plan = {
      key,
      period,
      fence: String(fence),
      run: ownerRun,
      execution: ownerExec,
      pass: ownerPass,
      ruleVersion,
    };
    return { subject: key, job, key, plan };
  },
  async perform(tx, _, { approval }) {
    const { key, fence, ownerRun: run, job, period } = await held(tx, textOf(approval.ask, 'key'));
    if (!(await revokeGrant(tx, { key, fence })))
      throw nothingToTakeOver(key, 'it was granted or ended at this moment');
    return { kind: 'owner', key, run, job, period };
  },
};

/** The action of a key that somebody holds now. */
async function held(tx: Tx, key: string): Promise<Action> {
  await knownKey(tx, key);
  const action = await actionByKey(tx, key);
  if (action?.state === 'running' && action.leaseLeftMs > 0) return action;
  if (action?.state === 'running')
    throw nothingToTakeOver(key, 'its lease has ended: the next worker takes over by itself');
  throw nothingToTakeOver(key, action === null ? 'nobody has claimed it' : `it is ${action.state}`);
}

function nothingToTakeOver(key: string, why: string): OnceperError {
  return new OnceperError({
    code: 'nothing_to_take_over',
    message: `nobody holds ${key} by a lease that is live: ${why}`,
    remedy: `npx onceper why ${key}`,
    at: key,
  });
}
