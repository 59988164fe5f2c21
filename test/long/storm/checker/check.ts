import pg from 'pg';
import { monthsOf } from './expected.ts';
import { readMoves } from './journal.ts';
import { checkMoney } from './money.ts';
import { checkFences, checkOrder } from './order.ts';
import { checkAudit, checkPeople, checkRawStarts } from './people.ts';
import { Verdict, type Violation } from './verdict.ts';

/** What is judged: a ledger at rest, and what lies outside of it. */
export interface Judged {
  readonly databaseUrl: string;
  readonly files: readonly string[];
  readonly ruleFile: string;
  /** The counterparty's journal. */
  readonly journal: string;
  /** Documents of ledgers that a restore replaced; the file may be absent. */
  readonly lives: string;
}

/** How often each invariant was checked, and every place where one does not hold. */
export interface Judgement {
  readonly checks: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
}

/**
 * Judges a ledger from outside: by SQL of its own over the raw tables, by the files of transactions, and by the counterparty's
 * journal. No code of the product takes part.
 */
export async function judge(judged: Judged): Promise<Judgement> {
  const verdict = new Verdict();
  const { moves } = readMoves(judged.journal);
  const client = new pg.Client({ connectionString: judged.databaseUrl });
  await client.connect();
  try {
    await client.query(`set timezone = 'UTC'`);
    await client.query('set default_transaction_read_only = on');
    const months = monthsOf(judged.files, judged.ruleFile);
    await checkMoney(client, { ...judged, moves }, verdict);
    await checkOrder(client, { months, lives: judged.lives, moves }, verdict);
    await checkFences(client, verdict);
    await checkAudit(client, verdict);
    await checkPeople(client, verdict);
    await checkRawStarts(client, verdict);
  } finally {
    await client.end();
  }
  return { checks: Object.fromEntries(verdict.checks), violations: verdict.violations };
}
