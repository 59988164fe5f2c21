import type { Client } from 'pg';
import { type Addition, type ExpectedLine, expectedLines } from './expected.ts';
import type { Moved } from './journal.ts';
import type { Verdict } from './verdict.ts';

/** What the checker is given. */
export interface Evidence {
  readonly files: readonly string[];
  readonly ruleFile: string;
  readonly moves: ReadonlyMap<string, Moved>;
}

async function additionsOf(client: Client): Promise<readonly Addition[]> {
  const { rows } = await client.query<{ month: string; merchant: string; currency: string; amount: string }>(
    `select period as month, merchant, currency, amount::text as amount from settlement.assigned_posting`,
  );
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }));
}

interface Effect {
  readonly number: string;
  readonly state: string;
  readonly body: string;
  readonly destination: string;
  readonly counterparty_id: string | null;
}

/** Lines, payouts, postings and transfers against what the files come to. */
export async function checkMoney(client: Client, evidence: Evidence, verdict: Verdict): Promise<void> {
  const lines = expectedLines(evidence.files, evidence.ruleFile, await additionsOf(client));
  await checkLines(client, lines, verdict);
  const payouts = lines.filter(({ payout }) => payout > 0n);
  const effects = await effectsOf(client);
  checkTransfers(payouts, effects, evidence.moves, verdict);
  await checkAccounts(client, { lines, effects, moves: evidence.moves }, verdict);
}

async function effectsOf(client: Client): Promise<ReadonlyMap<string, Effect>> {
  const { rows } = await client.query<Effect>(
    `select number, state, body, destination, counterparty_id from onceper.outbox where effect = 'payout'`,
  );
  return new Map(rows.map((row) => [row.number, row]));
}

async function checkLines(client: Client, lines: readonly ExpectedLine[], verdict: Verdict): Promise<void> {
  const { rows } = await client.query<Record<string, string>>(
    `select period, merchant, currency, sales::text, refunds::text, fees::text, net::text, carry_in::text, payout::text, closing::text
       from settlement.line where key not like '%:adj-%'`,
  );
  const found = new Map(rows.map((row) => [`${row['period']} ${row['merchant']} ${row['currency']}`, row]));
  verdict.same('lines are those of the files, no more', 'lines', lines.length, found.size);
  for (const line of lines) {
    const where = `${line.month} ${line.merchant} ${line.currency}`;
    const row = found.get(where);
    const stated =
      row === undefined
        ? 'nothing'
        : ['sales', 'refunds', 'fees', 'carry_in', 'payout', 'closing'].map((name) => row[name]).join(' ');
    const own = [line.sales, line.refunds, line.fees, line.carryIn, line.payout, line.closing].join(' ');
    verdict.same('each line is what the files come to', where, own, stated);
  }
}

function numberOf({ month, merchant, currency }: ExpectedLine): string {
  return `settlement:${month}:${merchant}:${currency}:payout`;
}

function checkTransfers(
  payouts: readonly ExpectedLine[],
  effects: ReadonlyMap<string, Effect>,
  moves: ReadonlyMap<string, Moved>,
  verdict: Verdict,
): void {
  for (const [number, { executed }] of moves) {
    verdict.check('a number moves money at most once', executed === 1, () => `${number} moved it ${executed} times`);
  }
  const expected = new Map(payouts.map((line) => [numberOf(line), line]));
  for (const [number] of moves) {
    verdict.check('money moves for expected payouts only', expected.has(number), () => `${number} is none`);
  }
  verdict.same('effects are the expected payouts, no more', 'payouts', expected.size, effects.size);
  for (const [number, line] of expected) {
    const moved = moves.get(number);
    const own = `${line.payout} ${line.currency} to ${line.merchant}`;
    if (moved !== undefined) {
      const stated = `${moved.amount} ${moved.currency} to ${moved.destination}`;
      verdict.same('money moves in the right amount, currency and direction', number, own, stated);
    }
    checkFate(number, effects.get(number), moved, verdict);
  }
}

/** What the ledger believes of an effect is what the counterparty did. */
function checkFate(number: string, effect: Effect | undefined, moved: Moved | undefined, verdict: Verdict): void {
  const did = moved === undefined ? 'nothing' : moved.status;
  const holds =
    effect?.state === 'failed'
      ? moved === undefined || moved.status === 'failed'
      : (effect?.state === 'succeeded' || effect?.state === 'returned') &&
        moved?.status === effect.state &&
        moved.id === effect.counterparty_id;
  verdict.check(
    'what the ledger believes is what happened',
    holds,
    () => `${number} is ${effect?.state ?? 'not there'} here, there ${did}`,
  );
}

/** The balance of every account and currency, by the postings, against sums that were added up here. */
async function checkAccounts(
  client: Client,
  own: { lines: readonly ExpectedLine[]; effects: ReadonlyMap<string, Effect>; moves: ReadonlyMap<string, Moved> },
  verdict: Verdict,
): Promise<void> {
  const { rows } = await client.query<{ currency: string; account: string; balance: string }>(
    `select currency, account, sum(amount)::text as balance
       from (select currency, credit as account, amount from settlement.posting
             union all select currency, debit, -amount from settlement.posting) side
      group by currency, account`,
  );
  const balances = new Map(rows.map(({ currency, account, balance }) => [`${currency} ${account}`, BigInt(balance)]));
  for (const currency of new Set(own.lines.map((line) => line.currency))) {
    const all = rows.filter((row) => row.currency === currency).reduce((sum, row) => sum + BigInt(row.balance), 0n);
    verdict.same('postings balance to zero', currency, 0n, all);
    verdict.same('nothing stays in transit', currency, 0n, balances.get(`${currency} in_transit`) ?? 0n);
    let paid = 0n;
    for (const [, { status, currency: moved, amount }] of own.moves) {
      if (moved === currency && status === 'succeeded') paid += BigInt(amount);
    }
    let believed = 0n;
    for (const line of own.lines) {
      if (line.currency === currency && own.effects.get(numberOf(line))?.state === 'succeeded') believed += line.payout;
    }
    const { rows: manual } = await client.query<{ cash: string }>(
      `select coalesce(sum(case when account = 'cash' then amount else 0 end), 0)::text as cash
         from settlement.assigned_posting where currency = $1`,
      [currency],
    );
    verdict.same('the counterparty has paid what the files come to', currency, believed, paid);
    const booked = (balances.get(`${currency} cash`) ?? 0n) + BigInt(manual[0]?.cash ?? '0');
    verdict.same('the ledger has booked what the counterparty has paid', currency, paid, booked);
  }
}
