import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { periodsAhead } from '../../../src/jobs/due.ts';
import type { GrantedContext, SettledEffect, SliceRange } from '../../../src/jobs/job.ts';
import { type JobRule, parseRule, periodCalendar } from '../../../src/jobs/rule.ts';
import { importFile } from '../../../src/jobs/settlement/import/import-file.ts';
import type { Imported, ImportRequest } from '../../../src/jobs/settlement/import/imported.ts';
import { createSettlementJob } from '../../../src/jobs/settlement/settlement.ts';
import { connect, type Database, openDatabase, transaction } from '../../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { forced } from '../../support/forced.ts';

export const job = createSettlementJob();

/** The result that close returns, as far as tests read it. */
export interface Result {
  readonly document: { readonly id: string; readonly totals: Record<string, Record<string, string>> };
  readonly lines: number;
  readonly payouts: number;
  readonly hash: string;
}

export interface Effect {
  readonly number: string;
  readonly subject: string;
  readonly effect: string;
  readonly destination: string;
  readonly body: string;
}

/** A settlement rule with what a test is about; zero fees and minimum where it says nothing. */
export function ruleWith(over: Record<string, unknown> = {}): JobRule {
  const body = {
    job: 'settlement',
    zone: 'Europe/London',
    period: 'month',
    first: '2026-01',
    calendar: { dayOfMonth: 1, hour: 2, minute: 0 },
    parameters: { fees: feesOf('GBP', 'JPY', 'KWD', 'EUR') },
    ...over,
  };
  return parseRule(body, 'test');
}

/** Fees of nothing for the currencies. */
export function feesOf(...currencies: readonly string[]): Record<string, { basisPoints: number; fixed: string }> {
  return Object.fromEntries(currencies.map((currency) => [currency, { basisPoints: 0, fixed: '0' }]));
}

/** A migrated database and a folder for one test file, opened before its tests and removed after them. */
export class Bench {
  #database: TestDatabase | undefined;
  #db: Database | undefined;
  #folder: string | undefined;

  static forThisFile(): Bench {
    const bench = new Bench();
    beforeAll(() => bench.open());
    afterAll(() => bench.close());
    return bench;
  }

  get db(): Database {
    if (this.#db === undefined) throw new Error('the bench is not open yet');
    return this.#db;
  }

  get url(): string {
    return this.#database?.url ?? '';
  }

  async open(): Promise<void> {
    this.#database = await createTestDatabase();
    this.#db = openDatabase({ url: this.#database.url, name: 'settlement test', max: 8 });
    this.#folder = await mkdtemp(join(tmpdir(), 'onceper-settlement-'));
  }

  async close(): Promise<void> {
    await this.#db?.close();
    await this.#database?.drop();
    if (this.#folder !== undefined) await rm(this.#folder, { recursive: true });
  }

  /** Starts with empty tables again: cheaper than a database a test. */
  async empty(): Promise<void> {
    await this.db.query(
      `truncate settlement.merchant, settlement.period, settlement.import, settlement.transaction, settlement.line,
                settlement.posting, settlement.document, settlement.assigned_posting`,
    );
  }

  path(name: string): string {
    return join(this.#folder ?? '', name);
  }

  async write(name: string, content: string | Buffer): Promise<string> {
    const path = this.path(name);
    await writeFile(path, content);
    return path;
  }

  /** Imports a file as it stands on the disk. */
  importPath(file: string, over: Partial<ImportRequest> = {}): Promise<Imported> {
    return importFile({
      connect: () => connect(this.db),
      file,
      source: 'generic',
      actor: 'test',
      rule: ruleWith(),
      ...over,
    });
  }

  /** Writes a file and imports it. */
  async importText(content: string | Buffer, over: Partial<ImportRequest> = {}, name = 'file.csv'): Promise<Imported> {
    return this.importPath(await this.write(name, content), over);
  }

  /** Makes the period rows that open would make. */
  async preparePeriods(rule: JobRule, now = '2026-11-30T12:00:00Z'): Promise<void> {
    await transaction(this.db, {}, (tx) => job.preparePeriods(tx, periodsAhead(rule, now)));
  }

  /** Seals and plans in one transaction, as the first grant does. */
  async claim(context: GrantedContext): Promise<readonly SliceRange[]> {
    return transaction(this.db, {}, async (tx) => {
      await job.seal(tx, context);
      return job.plan(tx, context);
    });
  }

  /** Performs one slice in one transaction, and reads its effects as the store would insert them. */
  async perform(context: GrantedContext, slice: SliceRange): Promise<{ result: unknown; effects: Effect[] }> {
    return transaction(this.db, {}, async (tx) => {
      const { result, effects } = await job.perform(tx, context, slice);
      if (effects === null) return { result, effects: [] };
      const { rows } = await tx.query<Effect>(effects.text, effects.values);
      return { result: JSON.parse(JSON.stringify(result)) as unknown, effects: rows };
    });
  }

  async closeKey(context: GrantedContext, results: readonly unknown[]): Promise<Result> {
    return (await transaction(this.db, {}, (tx) => job.close(tx, context, results))) as Result;
  }

  /** A period from seal to document. */
  async settle(rule: JobRule, period: string): Promise<{ result: Result; effects: readonly Effect[] }> {
    const context = contextOf(rule, period);
    const effects: Effect[] = [];
    const results: unknown[] = [];
    for (const slice of await this.claim(context)) {
      const performed = await this.perform(context, slice);
      results.push(performed.result);
      effects.push(...performed.effects);
    }
    return { result: await this.closeKey(context, results), effects };
  }

  /** Settles a period as `settle` does, with the ledger's row of its key, done. */
  async settleKey(rule: JobRule, period: string): Promise<void> {
    await this.settle(rule, period);
    await forced(
      this.db,
      `insert into onceper.action
         (key, job, period, state, owner_run, lease_until, fingerprint, overrides, rule_version, release, result, done_at)
       values ('settlement:' || $1, 'settlement', $1, 'done', 'r', clock_timestamp(), '', '{}', 1, 'test', '{}', clock_timestamp())`,
      [period],
    );
  }

  /** Tells the job what became of a merchant's payout in GBP. */
  settleEffect(key: string, subject: string, state: SettledEffect['state']): Promise<void> {
    const number = `${key}:${subject}:GBP:payout`;
    return transaction(this.db, {}, (tx) => job.settleEffects(tx, [{ number, key, subject, state }]));
  }

  gaps(): Promise<Readonly<Record<string, bigint>>> {
    return transaction(this.db, {}, (tx) => job.ledgerGaps(tx));
  }
}

export function contextOf(rule: JobRule, period: string, over: Partial<GrantedContext> = {}): GrantedContext {
  return {
    key: `settlement:${period}`,
    period,
    ruleVersion: 1,
    rule,
    calendar: periodCalendar(rule),
    overrides: {},
    fence: 1n,
    ...over,
  };
}
