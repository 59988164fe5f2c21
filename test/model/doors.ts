import { expect } from 'vitest';
import { close } from '../../activities/attempt.ts';
import type { OpenOutput, Start } from '../../activities/open.ts';
import type { ActivityServices } from '../../activities/services.ts';
import type { Database } from '../../src/store/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { mustClaim, openRunOf, performOne, servicesFor, testPool } from '../support/ledger.ts';
import { installTinyJob } from '../support/tiny-job.ts';
import type { World } from './ledger-model.ts';
import { createModelJob, NOMINAL_TIMES, storeModelJob } from './model-job.ts';

const OPENS = 50;
const SUBJECTS = 2;
const [[CALENDAR_TIME, OTHER_TIME]] = NOMINAL_TIMES;

/** Five ways to start one period: by schedule, by hand, as a backfill, the same start again, at another time of it. */
const DOORS: readonly ((id: string, job: string) => Partial<Start>)[] = [
  (id: string) => ({ startId: id, door: 'schedule', scheduledAt: CALENDAR_TIME }),
  (id: string) => ({ startId: id, door: 'run', scheduledAt: CALENDAR_TIME }),
  (id: string) => ({ startId: id, door: 'backfill', scheduledAt: CALENDAR_TIME }),
  (_: string, job: string) => ({ startId: `${job}-same`, door: 'schedule', scheduledAt: CALENDAR_TIME }),
  (id: string) => ({ startId: id, door: 'schedule', scheduledAt: OTHER_TIME }),
];
const RUNS = OPENS - OPENS / DOORS.length + 1;

const WORLD: World = {
  slices: SUBJECTS,
  budgets: [3, 3],
  needsPrevious: false,
  runsInFlight: null,
  late: false,
  inspection: 'ready',
};

/** Runs the rounds, each on a key of its own, in one database. */
export async function runDoors(rounds: number): Promise<void> {
  const database = await createTestDatabase();
  const db = testPool(database.url, OPENS);
  try {
    await installTinyJob(db);
    for (let round = 0; round < rounds; round += 1) await runRound(db, round);
  } finally {
    await db.close();
    await database.drop();
  }
}

/** Of fifty starts, all at once or half of them while the winner settles, one is admitted and all others name it. */
async function runRound(db: Database, round: number): Promise<void> {
  const job = `doors-${round}`;
  await storeModelJob(db, job, WORLD);
  const interruptions = { seal: null, close: null, perform: null, refusesSeal: false };
  const services = servicesFor(db, [createModelJob(job, WORLD, interruptions)]);
  const open = (at: number) => {
    const door = DOORS[(at + round) % DOORS.length];
    return openRunOf(services, { job, ...door?.(`${job}-${at}`, job) });
  };
  const all = Array.from({ length: OPENS }, (_, at) => at);
  const early = round % 2 === 0 ? OPENS : OPENS / 2;
  const first = await Promise.all(all.slice(0, early).map(open));
  const winners = new Set(first.filter((one) => one.decision === 'admitted').map((one) => one.run));
  expect(winners.size, `round ${round}: admitted runs`).toBe(1);
  const [winner = ''] = winners;
  const [settled, rest] = await Promise.all([settle(services, winner), Promise.all(all.slice(early).map(open))]);
  for (const answer of [...first, ...rest]) expectNames(answer, winner, settled.result);
  await expectOnce(db, job, winner);
}

async function settle(services: ActivityServices, run: string): Promise<{ result: unknown }> {
  const grant = await mustClaim(services, { run });
  await Promise.all(grant.slices.map((slice) => performOne(services, grant, slice)));
  const closed = await close(services, grant);
  if (closed.kind !== 'done') throw new Error(`the close was answered ${closed.kind}`);
  return closed;
}

function expectNames(answer: OpenOutput, winner: string, result: unknown): void {
  expect(answer.owner).toBe(winner);
  if (answer.run === winner) expect(answer.decision).toBe('admitted');
  else expect(['in_progress', 'duplicate']).toContain(answer.decision);
  if (answer.decision === 'duplicate') expect(answer.result).toEqual(result);
  expect(JSON.stringify(answer)).not.toMatch(
    /constraint|duplicate key|violates|relation|deadlock|SQLSTATE|\b[0-9A-Z]{2}P\d\d\b/i,
  );
}

/** One row of everything that there may be one of; a run for every start id. */
async function expectOnce(db: Database, job: string, winner: string): Promise<void> {
  const { rows } = await db.query<Record<string, number>>(
    `select (select count(*)::int4 from onceper.run where job_id = $1) as runs,
            (select count(*)::int4 from onceper.run where job_id = $1 and decision = 'admitted' and start_id = $2) as admitted,
            (select count(*)::int4 from onceper.run where job_id = $1 and repeat_of is null) as slots,
            (select count(*)::int4 from onceper.action where job = $1 and state = 'done' and fence = 1) as actions,
            (select count(*)::int4 from onceper.attempt where run = $2) as attempts,
            (select count(*)::int4 from tiny.document where starts_with(key, $1 || ':')) as documents,
            (select count(*)::int4 from onceper.outbox where starts_with(key, $1 || ':')) as effects`,
    [job, winner],
  );
  expect(rows).toEqual([
    { runs: RUNS, admitted: 1, slots: 2, actions: 1, attempts: 1, documents: 1, effects: SUBJECTS },
  ]);
}
