import type { Adjusting, ManualPosting } from '../../jobs/adjustment.ts';
import type { Job } from '../../jobs/job.ts';
import { OnceperError } from '../../kernel/error.ts';
import { businessKey, parseKey } from '../../kernel/key.ts';
import type { Tx } from '../../kernel/sql.ts';
import { actionByKey } from '../../store/actions.ts';
import { insertAdjustment, nextAdjustment } from '../../store/adjustments.ts';
import { appendAct } from '../../store/audit-ledger.ts';
import { type Act, type ActParts, type Ask, textOf } from './act.ts';

/**
 * Posts by hand what a period that is done got wrong, as a document of its own under `KEY:adj-N`. It sends nothing: the next
 * open period settles it with each subject. One adjustment of a period is asked for at a time, so its number is fixed with
 * the request, and a double click is one.
 */
export const adjustment: Act = {
  kinds: ['adjustment'],
  async plan(tx, parts, ask) {
    const { job, key, period, adj, ruleVersion, postings } = await planned(tx, parts, ask);
    const plan = { key: businessKey(job.id, period, adj), ruleVersion, postings: postings.map(wordOf) };
    return { subject: key, job: job.id, key, plan };
  },
  async perform(tx, parts, { approval, actor }) {
    const { job, adjusting, period, adj, ruleVersion, postings } = await planned(tx, parts, approval.ask);
    const by = { actor: approval.decidedBy ?? actor, reason: approval.reason };
    const key = businessKey(job.id, period, adj);
    const result = await adjusting.post(tx, { key, period, postings, ruleVersion, ...by });
    const done = { key, job: job.id, period, adj, ruleVersion, release: parts.release, result, actor: by.actor };
    await insertAdjustment(tx, done);
    await appendAct(tx, by, { verb: 'adjust', job: job.id, key, detail: { postings: postings.map(wordOf) } });
    return { kind: 'none' };
  },
};

interface PlannedAdjustment {
  readonly job: Job;
  readonly adjusting: Adjusting;
  readonly key: string;
  readonly period: string;
  readonly adj: string;
  readonly ruleVersion: number;
  readonly postings: readonly ManualPosting[];
}

async function planned(tx: Tx, { registry }: ActParts, ask: Ask): Promise<PlannedAdjustment> {
  const key = textOf(ask, 'key');
  const { job: id, period, adj: of } = parseKey(key);
  const job = registry.get(id);
  const { adjusting } = job;
  if (adjusting === undefined) throw nothingToAdjust(key, `the job ${id} keeps no books`);
  if (of !== null) throw nothingToAdjust(key, 'an adjustment is not adjusted: ask for another of its period');
  const action = await actionByKey(tx, key);
  if (action?.state !== 'done')
    throw nothingToAdjust(key, action === null ? 'it was never started' : `it is ${action.state}`);
  const postings = await checkedPostings(tx, adjusting, key, ask);
  const adj = await nextAdjustment(tx, { job: id, period });
  return { job, adjusting, key, period, adj, ruleVersion: action.ruleVersion, postings };
}

async function checkedPostings(tx: Tx, adjusting: Adjusting, key: string, ask: Ask): Promise<readonly ManualPosting[]> {
  const words = ask['postings'];
  if (!Array.isArray(words) || words.length === 0) throw malformed(key, 'an adjustment has at least one posting');
  const postings = words.map((word) => parsePosting(String(word)));
  const known = await adjusting.knownSubjects(
    tx,
    postings.map(({ subject }) => subject),
  );
  const seen = new Set<string>();
  for (const { subject, currency, account } of postings) {
    if (!known.has(subject)) throw malformed(`${subject}`, 'the job knows no such subject');
    if (!adjusting.accounts.includes(account))
      throw malformed(account, `money by hand comes from ${adjusting.accounts.join(', ')} or goes there`);
    if (seen.has(`${subject} ${currency}`))
      throw malformed(`${subject} ${currency}`, 'it has two postings; add them up');
    seen.add(`${subject} ${currency}`);
  }
  return postings;
}

const POSTING = /^([a-z0-9-]+):([A-Z]{3}):([a-z_]+):(-?[1-9][0-9]{0,17})$/;

/** `m-1001:GBP:fees:250`: a posting as it is typed. Throws OnceperError `malformed_posting`. */
export function parsePosting(word: string): ManualPosting {
  const [, subject = '', currency = '', account = '', amount = ''] = POSTING.exec(word) ?? [];
  if (amount === '')
    throw malformed(word, 'a posting is SUBJECT:CURRENCY:ACCOUNT:AMOUNT, the amount in minor units and not 0');
  return { subject, currency, account, amount: BigInt(amount) };
}

function wordOf({ subject, currency, account, amount }: ManualPosting): string {
  return [subject, currency, account, amount].join(':');
}

function malformed(at: string, why: string): OnceperError {
  return new OnceperError({
    code: 'malformed_posting',
    message: `'${at}': ${why}`,
    remedy: 'for example m-1001:GBP:fees:250, which gives the merchant 2.50 out of the fees; -250 takes it back',
    at,
  });
}

function nothingToAdjust(key: string, why: string): OnceperError {
  return new OnceperError({
    code: 'nothing_to_adjust',
    message: `${key} is not adjusted: ${why}`,
    remedy: 'only a key that is done is adjusted; until then import what is missing',
    at: key,
  });
}
