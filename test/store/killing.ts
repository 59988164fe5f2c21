import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'vitest';
import { actionByKey } from '../../src/store/actions.ts';
import { attemptsOfKey } from '../../src/store/attempts.ts';
import type { Database } from '../../src/store/database.ts';
import { runByStartId } from '../../src/store/runs.ts';
import { createTestDatabase } from '../support/database.ts';
import { claim, close, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import type { KillInput, Moment, Statement } from './kill-child.ts';

export const MOMENTS = ['before', 'during', 'after'] as const satisfies readonly Moment[];
const LEASE_MS = 1_000;

/** A statement of the path at which a process is killed. */
export interface Point extends Statement {
  readonly number: number;
  readonly moment: Moment;
}

/** What a kill left, and what it came to: how the attempts ended, oldest first. */
export interface Outcome {
  readonly point: Point;
  readonly attempts: string;
}

export interface Killing {
  /** Every point of the path, as a run of it showed: a new statement is among them by itself. */
  points(): Promise<Point[]>;
  /** Kills a process at the point, has this one finish, and checks what became of it. */
  kill(point: Point): Promise<Outcome>;
  end(): Promise<void>;
}

/** A ledger with a job by the day, of which each kill has a day of its own. */
export async function createKilling(): Promise<Killing> {
  const database = await createTestDatabase();
  const db = testPool(database.url, 10);
  const lease = { leaseSeconds: LEASE_MS / 1_000, startWindowSeconds: 1 };
  await installTinyJob(db, { period: 'day', first: '2024-01-01', calendar: { hour: 2, minute: 0 }, ...lease });
  let day = 0;
  let all: Statement[] = [];

  function nextDay(): { key: string; scheduledAt: string; startId: string } {
    day += 1;
    const [on, next] = [day, day + 1].map((at) => new Date(Date.UTC(2024, 0, at)).toISOString().slice(0, 10));
    return { key: `tiny:${on}`, scheduledAt: `${next}T02:00:00Z`, startId: `killed-${day}` };
  }

  return {
    async points() {
      const { scheduledAt, startId } = nextDay();
      const child = started({ databaseUrl: database.url, startId, scheduledAt, leaseMs: LEASE_MS, at: null });
      const [printed, [code]] = await Promise.all([child.stdout ? text(child.stdout) : '', once(child, 'exit')]);
      expect(code).toBe(0);
      all = JSON.parse(printed) as Statement[];
      return all.flatMap((one, number) => MOMENTS.map((moment) => ({ ...one, number, moment })));
    },
    async kill(point) {
      const { key, scheduledAt, startId } = nextDay();
      const at = { number: point.number, text: point.text, moment: point.moment };
      const child = started({ databaseUrl: database.url, startId, scheduledAt, leaseMs: LEASE_MS, at });
      expect(await once(child, 'exit')).toEqual([null, 'SIGKILL']);
      await finish(db, startId, scheduledAt);
      return { point, attempts: await checked(db, { key, startId, point, all }) };
    },
    async end() {
      await db.close();
      await database.drop();
    },
  };
}

function started(input: KillInput): ChildProcess {
  const script = path.join(import.meta.dirname, 'kill-child.ts');
  const stdio = ['ignore', 'pipe', 'inherit'] as const;
  return spawn(process.execPath, ['--import', 'tsx', script, JSON.stringify(input)], { stdio: [...stdio] });
}

/** Another process's execution: it opens the same start, claims until it is granted, and does what is left. */
async function finish(db: Database, startId: string, scheduledAt: string): Promise<void> {
  const services = servicesFor(db, [createTinyJob(2)]);
  const { run } = await openRunOf(services, { startId, scheduledAt });
  let pass = 0;
  const claimed = await waitFor(
    async () => {
      pass += 1;
      const answer = await claim(services, { run, execution: 'execution-2', pass });
      return answer.kind === 'busy' ? null : answer;
    },
    { what: `the grant or the end of ${run}`, timeoutMs: 15_000 },
  );
  if (claimed.kind === 'done') return;
  if (claimed.kind !== 'granted') throw new Error(`the claim was answered ${JSON.stringify(claimed)}`);
  for (const slice of claimed.slices) await performOne(services, claimed, slice, 30_000);
  expect(await close(services, claimed)).toMatchObject({ kind: 'done' });
}

interface Killed {
  readonly key: string;
  readonly startId: string;
  readonly point: Point;
  readonly all: readonly Statement[];
}

/** One document, one effect a number, no row lost or left open, and attempts that say what happened. */
async function checked(db: Database, { key, startId, point, all }: Killed): Promise<string> {
  const { rows } = await db.query<Record<string, number>>(
    `select (select count(*)::int4 from tiny.document where key = $1) as documents,
            (select count(*)::int4 from tiny.seal where key = $1) as seals,
            (select count(*)::int4 from tiny.entry where key = $1) as entries,
            (select count(*)::int4 from onceper.outbox where key = $1) as effects,
            (select count(distinct subject)::int4 from onceper.outbox where key = $1 and state = 'pending') as subjects,
            (select count(*)::int4 from onceper.slice where key = $1 and done_at is not null) as slices,
            (select count(*)::int4 from onceper.run where key = $1) as runs,
            (select count(*)::int4 from onceper.attempt where key = $1 and outcome is null) as open`,
    [key],
  );
  const once = { documents: 1, seals: 1, runs: 1, open: 0 };
  expect([point, rows[0]]).toEqual([point, { ...once, entries: 2, effects: 2, subjects: 2, slices: 2 }]);
  expect(await runByStartId(db, startId)).toMatchObject({ key, decision: 'admitted' });
  expect(await actionByKey(db, key)).toMatchObject({ state: 'done', ownerRun: startId, delivering: true });
  const attempts = await attemptsOfKey(db, key);
  const told = attempts.map(({ outcome, slicesFinished }) => `${outcome}, ${slicesFinished} finished`);
  expect([point, expectedAttempts(point, all)]).toEqual([point, expect.arrayContaining([told.join(' · ')])]);
  return told.join(' · ');
}

/** What the attempts must say: which commits the killed process had behind it is known but for the one that was under way. */
function expectedAttempts({ number, moment }: Point, all: readonly Statement[]): string[] {
  const committed = (upTo: number) =>
    new Set(all.flatMap(({ path: of, text: said }, at) => (said === 'commit' && at < upTo ? [of] : [])));
  const certain = moment === 'after' ? number + 1 : number;
  const bounds = moment === 'during' ? [certain, number + 1] : [certain];
  return bounds.map((upTo) => attemptsAfter(committed(upTo)));
}

function attemptsAfter(committed: ReadonlySet<string>): string {
  if (committed.has('close')) return 'done, 2 finished';
  if (!committed.has('claim')) return 'done, 2 finished';
  const finished = ['slice 0', 'slice 1'].filter((slice) => committed.has(slice)).length;
  return `lease_expired, ${finished} finished · done, ${2 - finished} finished`;
}
