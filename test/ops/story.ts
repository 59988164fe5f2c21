import type { OpenOutput, Start } from '../../activities/open.ts';
import type { ActivityServices } from '../../activities/services.ts';
import { nominalTimeOf } from '../../src/jobs/occasion.ts';
import { parseRule } from '../../src/jobs/rule.ts';
import type { Database } from '../../src/store/database.ts';
import { createTestDatabase } from '../support/database.ts';
import {
  close,
  endAttempt,
  type Granted,
  mustClaim,
  openRunOf,
  performOne,
  servicesFor,
  testPool,
} from '../support/ledger.ts';
import { createTinyJob, installTinyJob, type TinyHooks, tinyRule } from '../support/tiny-job.ts';

/** A ledger of the tiny job's, two slices a period, in which a test lets things happen. */
export interface Story {
  readonly url: string;
  readonly db: Database;
  readonly services: ActivityServices;
  /** A run of a period by the schedule, unless the input says otherwise. */
  open(period: string, input?: Partial<Start>): Promise<OpenOutput>;
  claim(run: string, pass?: number): Promise<Granted>;
  perform(grant: Granted, slice: number): Promise<void>;
  /** Opens a period and carries it to its document. */
  settle(period: string): Promise<OpenOutput>;
  fail(grant: Granted, code: string): Promise<void>;
  /** What would be, had so much time passed: the lease of a key ended `agoMs` ago. */
  endLease(key: string, agoMs: number): Promise<void>;
  drop(): Promise<void>;
}

const STORY_RULE = { zone: 'Asia/Shanghai', first: '2026-01', budget: 1 };

/** Makes a database with the tiny job; settings of its rule and what its job does may be changed. */
export async function createStory(
  options: { readonly rule?: Readonly<Record<string, unknown>>; readonly hooks?: TinyHooks } = {},
): Promise<Story> {
  const database = await createTestDatabase();
  const db = testPool(database.url, 6);
  const changes = { ...STORY_RULE, ...options.rule };
  await installTinyJob(db, changes);
  const rule = parseRule(tinyRule(changes), 'tiny');
  const services = servicesFor(db, [createTinyJob(2, options.hooks)]);
  const story: Story = {
    url: database.url,
    db,
    services,
    open: (period, input = {}) =>
      openRunOf(services, { scheduledAt: nominalTimeOf(rule, period), actor: 'schedule:tiny', ...input }),
    claim: (run, pass = 1) => mustClaim(services, { run, pass, execution: 'execution-1' }),
    async perform(grant, slice) {
      await performOne(services, grant, slice);
    },
    async settle(period) {
      const opened = await story.open(period);
      const grant = await story.claim(opened.run);
      for (const slice of grant.slices) await performOne(services, grant, slice);
      await close(services, grant);
      return opened;
    },
    async fail({ key, fence }, code) {
      const detail = 'the server closed the connection';
      await endAttempt(services, { key, fence, outcome: 'failed', code, detail, slicesBegun: 1 });
    },
    async endLease(key, agoMs) {
      await db.query(
        `update onceper.action set lease_until = clock_timestamp() - $2 * interval '1 millisecond' where key = $1`,
        [key, agoMs],
      );
    },
    async drop() {
      await db.close();
      await database.drop();
    },
  };
  return story;
}
