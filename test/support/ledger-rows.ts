import { afterAll, beforeAll } from 'vitest';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry, type Registry } from '../../src/jobs/registry.ts';
import type { Tx } from '../../src/kernel/sql.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { type TakenEffect, takeDueEffects } from '../../src/store/outbox-take.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { PAST_GUARDS } from './forced.ts';

/** The job of rows that a test writes into the ledger by hand: it delivers, and posts what became of each effect. */
export const TEST_JOB = 'payroll';

/** A month's key of the test job. */
function testKey(period = '2026-09'): string {
  return `${TEST_JOB}:${period}`;
}

/** An effect's number of the test job. */
function testNumber(key: string, subject: string): string {
  return `${key}:${subject}:GBP:payout`;
}

/** The body that a number is frozen with. */
export function testBody(number: string, amount = '1250', destination = 'm-1'): string {
  return JSON.stringify({ amount, currency: 'GBP', destination, reference: number });
}

/** Writes the test job, its rule version 1, and the table that its settleEffects posts to. Once a database. */
async function insertTestJob(tx: Tx): Promise<void> {
  await tx.query(
    `with job as (insert into onceper.job (job, active_rule) values ($1, 1))
     insert into onceper.rule (job, version, body, loaded_by) values ($1, 1, '{}', 'test')`,
    [TEST_JOB],
  );
  await tx.query('create table if not exists public.fate (number text, state text, primary key (number, state))');
}

/** Writes an action of the test job that is done and delivering, and whose period ended so many hours ago, whatever its name. */
async function insertDoneAction(tx: Tx, key: string, endedHoursAgo: number | null): Promise<void> {
  await tx.query(
    `with ${PAST_GUARDS}
     insert into onceper.action (key, job, period, state, fence, owner_run, lease_until, fingerprint, overrides, rule_version,
                                 release, delivering, result, done_at, period_ends)
     select $1, $2, $3, 'done', 1, 'run-1', clock_timestamp(), '-', '{}', 1, 'test', true, '{}', clock_timestamp(),
            clock_timestamp() - $4 * interval '1 hour' from past`,
    [key, TEST_JOB, key.slice(TEST_JOB.length + 1), endedHoursAgo],
  );
}

/** Writes one pending effect of a subject, due now; returns its number. */
export async function insertEffect(
  tx: Tx,
  effect: { readonly key: string; readonly subject: string; readonly body?: string },
): Promise<string> {
  const number = testNumber(effect.key, effect.subject);
  await tx.query(
    `with ${PAST_GUARDS}
     insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence)
     select $1, $2, $3, 'payout', 'bank', $4, 1 from past`,
    [number, effect.key, effect.subject, effect.body ?? testBody(number)],
  );
  return number;
}

/** Writes `count` pending effects of a key, with subjects m-1, m-2, …; returns their numbers in that order. */
export async function insertEffects(tx: Tx, key: string, count: number): Promise<string[]> {
  const { rows } = await tx.query<{ number: string }>(
    `with ${PAST_GUARDS}
     insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence)
     select n.number, $1, 'm-' || i, 'payout', 'bank',
            '{"amount":"' || 100 + i || '","currency":"GBP","destination":"m-' || i || '","reference":"' || n.number || '"}', 1
       from past, generate_series(1, $2::int4) i, lateral (select $1 || ':m-' || i || ':GBP:payout' as number) n
     returning number`,
    [key, count],
  );
  return rows.map((row) => row.number);
}

/** Writes one notice of a key to a receiver, due now; returns its number. */
export async function insertNotice(
  tx: Tx,
  notice: { readonly key: string; readonly receiver: string; readonly waitsFor?: string },
): Promise<string> {
  const { key, receiver, waitsFor = null } = notice;
  const number = `${key}:${receiver}:XXX:completed`;
  await tx.query(
    `with ${PAST_GUARDS}
     insert into onceper.outbox (number, key, subject, effect, destination, body, written_by_fence, waits_for)
     select $1, $2, $3::text, 'completed', 'webhook:' || $3::text, $4, 1, $5 from past`,
    [number, key, receiver, JSON.stringify({ specversion: '1.0', id: number, subject: key }), waitsFor],
  );
  return number;
}

/** What the test job posted, `number state` a line, in order. */
export async function fates(tx: Tx): Promise<string[]> {
  const { rows } = await tx.query<{ fate: string }>(
    `select number || ' ' || state as fate from public.fate order by 1`,
  );
  return rows.map((row) => row.fate);
}

/** What a take of the test job's effects takes. */
export async function take(
  tx: Tx,
  limit = 100,
  leaseMs = 60_000,
  jobs: readonly string[] = [TEST_JOB],
): Promise<TakenEffect[]> {
  return [...(await takeDueEffects(tx, { limit, leaseMs, jobs })).effects];
}

/** What a test does in the middle of a recording transaction, before anything is posted. */
export type OnSettle = (numbers: readonly string[], tx: Tx) => void | Promise<void>;

/** A registry with the test job alone. */
export function testRegistry(onSettle: OnSettle = () => undefined): Registry {
  const unasked = (): never => {
    throw new Error('a relay asks a job for settleEffects only');
  };
  const job: Job = {
    id: TEST_JOB,
    needs: 'nothing',
    parseParameters: unasked,
    checkOverrides: unasked,
    preparePeriods: unasked,
    inspect: unasked,
    seal: unasked,
    plan: unasked,
    perform: unasked,
    close: unasked,
    ledgerGaps: unasked,
    async settleEffects(tx, effects) {
      const numbers = effects.map((effect) => effect.number);
      await onSettle(numbers, tx);
      await tx.query('insert into public.fate (number, state) select * from unnest($1::text[], $2::text[])', [
        numbers,
        effects.map((effect) => effect.state),
      ]);
    },
  };
  return createRegistry([job]);
}

/** The ledger of one test file. */
export interface TestLedger {
  readonly db: Database;
  readonly url: string;
  /** A key of its own, done and delivering, whose period has ended now or so many hours ago; no earlier one delivers any more. */
  freshKey(endedHoursAgo?: number | null): Promise<string>;
}

/** A database with the test job in it, for the tests of the file that calls this at its top. */
export function useTestLedger(connections = 6): TestLedger {
  let home: TestDatabase | null = null;
  let db: Database | null = null;
  let year = 2000;

  beforeAll(async () => {
    home = await createTestDatabase();
    db = openDatabase({ url: home.url, name: 'ledger test', max: connections });
    await insertTestJob(db);
  });
  afterAll(async () => {
    await db?.close();
    await home?.drop();
  });

  const begun = <T>(value: T | null): T => {
    if (value === null) throw new Error('the ledger exists inside tests only');
    return value;
  };
  return {
    get db() {
      return begun(db);
    },
    get url() {
      return begun(home).url;
    },
    async freshKey(endedHoursAgo = 0) {
      await begun(db).query('update onceper.action set delivering = false where delivering');
      year += 1;
      const key = testKey(`${year}-09`);
      await insertDoneAction(begun(db), key, endedHoursAgo);
      return key;
    },
  };
}
