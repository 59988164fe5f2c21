import {
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  setHandler,
  upsertMemo,
  workflowInfo,
} from '@temporalio/workflow';
import type { Looked } from '../activities/epoch.ts';
import { look } from './options.ts';

/** What is remembered outside the database; null before the first look. */
interface EpochInput {
  readonly remembered: Looked | null;
}

/** Asks for a look at once: a worker that starts must not deliver from a rewound database for a minute. */
const lookSignal = defineSignal('look');

const EVERY = '1 minute';

/**
 * Remembers outside the database who the database is, and where its audit ends, one look a minute, in this workflow's state and memo. A database that
 * was restored, or failed over with commits lost, shows an older identity than what is remembered here, and is frozen; so is one
 * whose audit lacks what was anchored. Such an anchor stays: it never falls.
 */
export async function epoch(input: EpochInput): Promise<never> {
  let { remembered } = input;
  let asked = true;
  setHandler(lookSignal, () => {
    asked = true;
  });
  for (;;) {
    asked = false;
    try {
      remembered = await look(remembered);
      const { audit, ...identity } = remembered;
      upsertMemo({ epoch: { ...identity }, ...(audit === undefined ? {} : { audit: { ...audit } }) });
    } catch (error) {
      if (isCancellation(error)) throw error;
      // The database is away: what is remembered stays, and the next look compares with it.
    }
    if (workflowInfo().continueAsNewSuggested) await continueAsNew<typeof epoch>({ remembered });
    await condition(() => asked, EVERY);
  }
}
