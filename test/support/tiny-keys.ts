import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { ActivityServices } from '../../activities/services.ts';
import type { Database } from '../../src/store/database.ts';
import { createModelJob, type Interruptions } from '../model/model-job.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { openRunOf, servicesFor, testPool } from './ledger.ts';
import { type Mishaps, withMishaps } from './pausing.ts';
import { installTinyJob } from './tiny-job.ts';
import { waitFor } from './wait.ts';

/** A month of the tiny job for each test, two slices each, whose steps and transactions can be interrupted. */
export interface TinyKeys {
  readonly db: Database;
  readonly key: string;
  readonly period: string;
  /** Called once by the next step of the job that comes there. */
  readonly interruptions: Interruptions;
  /** Befall the next transaction of whoever works with `services()`. */
  readonly mishaps: Mishaps;
  readonly services: () => ActivityServices;
  /** Opens a run of the test's month and returns it. */
  readonly admitted: () => Promise<string>;
  /** Waits until a connection of this database waits for another's lock. */
  readonly untilBlocked: (what: string) => Promise<void>;
}

/** Makes a database for the file that calls this at its top. */
export function useTinyKeys(): TinyKeys {
  let home: TestDatabase | null = null;
  let db: Database | null = null;
  let month = 0;
  const interruptions: Interruptions = { seal: null, close: null, perform: null, refusesSeal: false };
  const mishaps: Mishaps = { beforeTransaction: null, losesCommitAnswer: false };
  const begun = (): Database => {
    if (db === null) throw new Error('the database exists inside tests only');
    return db;
  };
  beforeAll(async () => {
    home = await createTestDatabase();
    db = testPool(home.url);
    await installTinyJob(db);
  });
  afterAll(async () => {
    await db?.close();
    await home?.drop();
  });
  beforeEach(() => {
    month += 1;
    Object.assign(interruptions, { seal: null, close: null, perform: null, refusesSeal: false });
    Object.assign(mishaps, { beforeTransaction: null, losesCommitAnswer: false });
  });
  const named = (at: number) => `2021-${String(at).padStart(2, '0')}`;
  const services = () => servicesFor(withMishaps(begun(), mishaps), [createModelJob('tiny', WORLD, interruptions)]);
  return {
    get db() {
      return begun();
    },
    get period() {
      return named(month);
    },
    get key() {
      return `tiny:${named(month)}`;
    },
    interruptions,
    mishaps,
    services,
    admitted: async () => (await openRunOf(services(), { scheduledAt: `${named(month + 1)}-01T02:00:00Z` })).run,
    untilBlocked: async (what) => {
      await waitFor(() => isBlocked(begun()), { what });
    },
  };
}

const WORLD = {
  slices: 2,
  budgets: [3, 3],
  needsPrevious: false,
  runsInFlight: null,
  late: false,
  inspection: 'ready',
} as const;

async function isBlocked(db: Database): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
  );
  return rowCount > 0;
}
