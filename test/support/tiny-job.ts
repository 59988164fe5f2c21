import type { Estimate, Job } from '../../src/jobs/job.ts';
import { parseRule } from '../../src/jobs/rule.ts';
import { OnceperError } from '../../src/kernel/error.ts';
import type { Tx } from '../../src/kernel/sql.ts';
import { type Database, transaction } from '../../src/store/database.ts';
import { loadFirstRule } from '../../src/store/rules.ts';

/** What a test may do in the middle of a job's step; each is called inside the step's open transaction. */
export interface TinyHooks {
  needs?: Job['needs'];
  id?: string;
  inspect?: Job['inspect'];
  estimate?: NonNullable<Job['estimate']>;
  seal?: (tx: Tx) => Promise<void>;
  perform?: (tx: Tx, slice: number, key: string) => Promise<void>;
  close?: (tx: Tx) => Promise<void>;
  /** What close returns; without it a document without totals. */
  result?: () => unknown;
}

/**
 * A second job beside settlement: `subjects` subjects, one a slice, an entry and an effect each, and one document a key. It
 * knows nothing of onceper's schema; its primary keys make any second performance an error that a test sees.
 */
export function createTinyJob(subjects: number, hooks: TinyHooks = {}): Job {
  const names = Array.from({ length: subjects }, (_, at) => `s-${String(at + 1).padStart(4, '0')}`);
  return {
    id: hooks.id ?? 'tiny',
    needs: hooks.needs ?? 'nothing',
    parseParameters: (parameters) => parameters,
    checkOverrides(overrides) {
      const [unknown] = Object.keys(overrides).filter((name) => name !== 'empty' && name !== 'color');
      if (unknown === undefined) return;
      throw new OnceperError({ code: 'unknown_override', message: `tiny knows no ${unknown}`, remedy: 'leave it out' });
    },
    preparePeriods: () => Promise.resolve(),
    inspect: hooks.inspect ?? (() => Promise.resolve({ kind: 'ready' })),
    estimate: hooks.estimate ?? (() => Promise.resolve(estimateOf(subjects))),
    async seal(tx, context) {
      await hooks.seal?.(tx);
      await tx.query(`insert into tiny.seal (key, fence) values ($1, $2)`, [context.key, context.fence]);
    },
    plan: () => Promise.resolve(names.map((name, at) => ({ slice: at, firstSubject: name, lastSubject: name }))),
    async perform(tx, context, range) {
      await tx.query(`insert into tiny.entry (key, subject, fence) values ($1, $2, $3)`, [
        context.key,
        range.firstSubject,
        context.fence,
      ]);
      await hooks.perform?.(tx, range.slice, context.key);
      return { result: { entries: 1 }, effects: effectsOf(context.key, range.firstSubject) };
    },
    async close(tx, context, slices) {
      await hooks.close?.(tx);
      const id = `doc-${context.key}`;
      await tx.query(`insert into tiny.document (key, fence, entries) values ($1, $2, $3)`, [
        context.key,
        context.fence,
        slices.length,
      ]);
      return hooks.result === undefined ? { document: { id, totals: {} } } : hooks.result();
    },
    async settleEffects(tx, effects) {
      await tx.query(
        `insert into tiny.settled (number, state)
         select number, state from jsonb_to_recordset($1::jsonb) as e (number text, state text)`,
        [JSON.stringify(effects.map(({ number, state }) => ({ number, state })))],
      );
    },
    ledgerGaps: () => Promise.resolve({}),
  };
}

/** What the tiny job expects of every period: 1.00 a subject. */
export function estimateOf(subjects: number): Estimate {
  return { subjects, amounts: { GBP: { payout: String(100 * subjects) } } };
}

function effectsOf(key: string, subject: string) {
  const text = `select key || ':' || subject || ':GBP:payout' as number, subject, 'payout' as effect, subject as destination,
                       '{"amount":"100","currency":"GBP","destination":"' || subject || '","reference":"' || key || ':' || subject || ':GBP:payout"}' as body
                  from tiny.entry where key = $1 and subject = $2`;
  return { text, values: [key, subject] };
}

/** The rule of the tiny job: monthly in UTC from 2020-01, a lease that a test can outlive. */
export function tinyRule(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    job: 'tiny',
    zone: 'UTC',
    period: 'month',
    first: '2020-01',
    calendar: { dayOfMonth: 1, hour: 2, minute: 0 },
    leaseSeconds: 30,
    startWindowSeconds: 30,
    subjectsPerSlice: 1,
    slicesInFlight: 4,
    budget: 3,
    // Tests open more keys of one ledger than any installation has in flight.
    limits: { runsInFlight: null, backlogEffects: null, backlogOldestSeconds: null },
    parameters: {},
    ...changes,
  };
}

/** Makes the tiny job's schema and loads its rule. */
export async function installTinyJob(db: Database, changes: Readonly<Record<string, unknown>> = {}): Promise<void> {
  const rule = tinyRule(changes);
  const { job } = parseRule(rule, 'tiny');
  await transaction(db, {}, async (tx) => {
    await tx.query(`
      create schema if not exists tiny;
      create table if not exists tiny.seal (key text primary key, fence bigint not null);
      create table if not exists tiny.entry (key text, subject text, fence bigint not null, primary key (key, subject));
      create table if not exists tiny.document (key text primary key, fence bigint not null, entries int not null);
      create table if not exists tiny.settled (number text primary key, state text not null)`);
  });
  await loadFirstRule(db, { job, body: rule, loadedBy: 'test' });
}
