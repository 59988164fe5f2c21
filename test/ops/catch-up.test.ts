import { Client, Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { occasionsOf } from '../../src/jobs/occasion.ts';
import { type JobRule, parseRule, periodCalendar } from '../../src/jobs/rule.ts';
import { periodBounds, periodClosedBy, periodsBetween } from '../../src/kernel/period.ts';
import { applySchedule } from '../../src/ops/schedule.ts';
import { previewSchedule } from '../../src/ops/schedule-preview.ts';
import { createTestNamespace } from '../support/namespace.ts';
import { SAMPLES } from '../support/samples.ts';
import { tinyRule } from '../support/tiny-job.ts';

/** A moment from which dates are written out to the end of a sample's three years and not much further. */
const nowOf = ({ first }: JobRule) => `${Number(first.slice(0, 4)) + 1}-01-01T00:00:00Z`;
/** Of the samples those that Temporal's own calendars say as they are meant; the others are written out. */
const CALENDARS: ReadonlySet<string> = new Set(['sydney-skipping-gaps', 'lord-howe-second', 'plain-in-london']);
let client: Client;

beforeAll(async () => {
  const { address, namespace } = await createTestNamespace();
  client = new Client({ connection: await Connection.connect({ address }), namespace });
});
afterAll(async () => client.connection.close());

/** The first period of a sample and the last one of its three years. */
function threeYears(rule: JobRule): { from: string; to: string } {
  const calendar = periodCalendar(rule);
  const start = Date.parse(periodBounds(rule.first, calendar).starts);
  return { from: rule.first, to: periodClosedBy(new Date(start + 3 * 365.25 * 86_400_000).toISOString(), calendar) };
}

/** When the server would start a schedule's ticks, catching up or backfilling, between two instants, the latter excluded. */
async function serverInstants(scheduleId: string, from: string, to: string): Promise<string[]> {
  const found: string[] = [];
  const step = 300 * 86_400_000;
  for (let at = Date.parse(from); at < Date.parse(to); at += step) {
    const { startTime } = await client.workflowService.listScheduleMatchingTimes({
      namespace: client.options.namespace,
      scheduleId,
      // The server looks after the start, and up to the end.
      startTime: msToTs(at - 1_000),
      endTime: msToTs(Math.min(at + step, Date.parse(to)) - 1_000),
    });
    found.push(
      ...(startTime ?? []).map(({ seconds }) => `${new Date(Number(seconds) * 1_000).toISOString().slice(0, 19)}Z`),
    );
  }
  return found;
}

describe('each sample’s periods', () => {
  test.each(Object.entries(SAMPLES))(
    'are closed once by the instants of a real server, over three years: %s',
    async (job, changes) => {
      const rule = parseRule({ ...tinyRule(changes), job }, job);
      const { from, to } = threeYears(rule);
      const calendar = periodCalendar(rule);
      await applySchedule(client, { job, rule, taskQueue: 'nobody', now: nowOf(rule) });
      const occasions = occasionsOf(rule, from, to);
      const [first] = occasions;
      const last = periodBounds(to, calendar);
      const end = occasionsOf(rule, to, to).at(-1)?.at ?? last.ends;
      const instants = await serverInstants(job, first?.ends ?? '', new Date(Date.parse(end) + 1_000).toISOString());
      const left = occasions.filter(({ how }) => how === 'check').map(({ period }) => period);
      expect(instants).toEqual(occasions.filter(({ how }) => how !== 'check').map(({ at }) => at));
      const closed = instants.map((at) => periodClosedBy(at, calendar));
      expect([...closed, ...left].toSorted()).toEqual(periodsBetween(from, to, calendar).toSorted());
      const previewed = previewSchedule(rule, nowOf(rule), 10_000, { from, to });
      expect(previewed).toEqual(occasions);
      const { spec } = await client.schedule.getHandle(job).describe();
      expect([job, spec.timezone === rule.zone]).toEqual([job, CALENDARS.has(job)]);
      await client.schedule.getHandle(job).delete();
    },
  );
});
