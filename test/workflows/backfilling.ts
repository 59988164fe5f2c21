import { afterEach, beforeEach, expect } from 'vitest';
import type { ShownBackfill } from '../../src/app/backfill-text.ts';
import type { Inspection } from '../../src/kernel/admission.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { type Database, openDatabase } from '../../src/store/database.ts';
import { as, documentOf, type Printed, typed } from '../app/command-line.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';

/** A request as the command line prints it. */
export interface Request {
  readonly id: string;
  readonly digest: string;
  readonly plan: { readonly periods: readonly { readonly period: string; readonly act: string }[] };
}

/** Holds every slice of the daily job until it is let go, and counts who is inside. */
export const gate = {
  isShut: true,
  inside: new Map<string, () => void>(),
  most: 0,
  async pass(key: string): Promise<void> {
    if (!gate.isShut) return;
    await new Promise<void>((resolve) => {
      gate.inside.set(key, resolve);
      gate.most = Math.max(gate.most, gate.inside.size);
    });
  },
  letGo(key: string): void {
    gate.inside.get(key)?.();
    gate.inside.delete(key);
  },
  open(): void {
    gate.isShut = false;
    for (const key of gate.inside.keys()) gate.letGo(key);
  },
};

/** What the daily job says of its periods before they are admitted; a test may say otherwise. */
export const world: { inspect: ((period: string) => Inspection) | null } = { inspect: null };

const daily = createTinyJob(1, {
  id: 'daily',
  inspect: (_, { period }) => Promise.resolve(world.inspect?.(period) ?? { kind: 'ready' }),
  perform: (_, __, key) => gate.pass(key),
});
export const monthly = createTinyJob(10);
const chain = createTinyJob(2, { id: 'chain', needs: 'previous' });
const jobs = [daily, monthly, chain];

const DAILY = { job: 'daily', period: 'day', first: '2026-01-01', calendar: { hour: 2, minute: 0 }, latenessDays: 10 };

/** A database, a namespace and two people for each test of the file that calls this at its top. */
export interface Backfilling {
  readonly db: Database;
  /** Starts the worker, which stops after the test. */
  start(): Promise<TestWorker>;
  /** Ann asks; bob decides. */
  ann(...line: string[]): Promise<Printed>;
  bob(...line: string[]): Promise<Printed>;
  bobWith(given: Readonly<Record<string, string>>, ...line: string[]): Promise<Printed>;
  request(job: string, from: string, to: string): Promise<Request>;
  approve(request: Pick<Request, 'id' | 'digest'>): Promise<void>;
  show(id: string): Promise<ShownBackfill>;
  isDone(key: string): Promise<boolean>;
}

export function useBackfilling(): Backfilling {
  let database: TestDatabase | null = null;
  let db: Database | null = null;
  let namespace: TestNamespace | null = null;
  let worker: TestWorker | null = null;
  const begun = <T>(value: T | null): T => {
    if (value === null) throw new Error('this exists inside tests only');
    return value;
  };
  beforeEach(async () => {
    Object.assign(gate, { isShut: true, inside: new Map(), most: 0 });
    world.inspect = null;
    [database, namespace] = await Promise.all([createTestDatabase(), createTestNamespace()]);
    db = openDatabase({ url: database.url, name: 'test', max: 6 });
    await installTinyJob(db, DAILY);
    await installTinyJob(db, { first: '2026-01', latenessDays: 10, budget: 1 });
    await installTinyJob(db, { job: 'chain', first: '2026-01', latenessDays: 10 });
  });
  afterEach(async () => {
    gate.open();
    await worker?.stop();
    worker = null;
    await db?.close();
    await database?.drop();
  });
  const environment = () => ({
    DATABASE_URL: begun(database).url,
    TEMPORAL_ADDRESS: begun(namespace).address,
    TEMPORAL_NAMESPACE: begun(namespace).namespace,
  });
  const people: Backfilling = {
    get db() {
      return begun(db);
    },
    async start() {
      worker = await startTestWorker({ namespace: begun(namespace), databaseUrl: begun(database).url, jobs });
      return worker;
    },
    ann: (...line) => typed(line, environment(), { jobs }),
    bob: (...line) => people.bobWith({}, ...line),
    bobWith: async (given, ...line) =>
      typed(line, { ...environment(), ...(await as('bob', 'operator', 'approver')), ...given }, { jobs }),
    async request(job, from, to) {
      const range = ['--from', from, '--to', to, '--reason', 'the worker was down'];
      const printed = await people.ann('backfill', 'request', job, ...range, '--json');
      expect(printed.err).toBe('');
      return documentOf<{ approval: Request }>(printed).approval;
    },
    async approve({ id, digest }) {
      expect(await people.bob('approvals', 'approve', id, '--digest', digest)).toMatchObject({ code: 0 });
    },
    show: async (id) => documentOf(await people.ann('backfill', 'show', id, '--json')),
    isDone: async (key) => (await actionByKey(begun(db), key))?.state === 'done',
  };
  return people;
}
