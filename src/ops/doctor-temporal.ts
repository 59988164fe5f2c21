import type { Client } from '@temporalio/client';
import type { Registry } from '../jobs/registry.ts';
import { storedRule } from '../jobs/rule.ts';
import { type Horizons, retentionFault } from '../kernel/retention.ts';
import type { Database } from '../store/database.ts';
import { activeRule } from '../store/rules.ts';
import { between, inWords } from './both-clocks.ts';
import { type Check, checked, fail, ok, warn } from './check.ts';
import { lastPoll, POLL_WITHIN_MS } from './run.ts';
import { describeSchedule, type ListedSchedule, listSchedules } from './schedule.ts';
import { CATCH_UP_DAYS } from './schedule-times.ts';
import { compareZones, disputeText } from './zones.ts';

/** Temporal as this release needs it. The first row says whether there is a server. */
export async function checkTemporal(client: Client, taskQueue: string): Promise<Check[]> {
  return [
    ...(await checked('temporal', () => checkNamespace(client))),
    ...(await checked('search attributes', () => checkSearchAttributes(client))),
    ...(await checked('worker', () => checkWorker(client, taskQueue))),
  ];
}

async function checkNamespace(client: Client): Promise<Check> {
  const { namespace } = client.options;
  const { serverVersion } = await client.workflowService.getSystemInfo({});
  const { config } = await client.workflowService.describeNamespace({ namespace });
  const retention = Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) * 1_000;
  return ok(
    'temporal',
    `server ${serverVersion}, namespace ${namespace}, closed workflows kept for ${inWords(retention)}`,
  );
}

/** Days for which closed workflows are kept, so that they may still be reset or asked again. */
async function namespaceDays(client: Client): Promise<number> {
  const { namespace } = client.options;
  const { config } = await client.workflowService.describeNamespace({ namespace });
  return Math.ceil(Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) / 86_400);
}

/** What of retention Temporal and the rule don't know: what the relay's configuration says. */
export type DeliveryHorizons = Pick<Horizons, 'retryDays' | 'messageDays' | 'webhookDays'>;

/** Whether each job's keys outlive whoever may still ask for them, by its real schedule and the real namespace. */
export async function checkRetention(
  db: Database,
  client: Client,
  { registry, delivery }: { readonly registry: Registry; readonly delivery: DeliveryHorizons },
): Promise<Check[]> {
  const namespace = await namespaceDays(client);
  const rows: Check[] = [];
  for (const job of registry.ids) {
    const stored = await activeRule(db, job);
    if (stored === null) continue;
    const rule = storedRule(stored);
    const catchUpDays = await catchUpWindow(client, job);
    const { keepKeysDays, latenessDays } = rule;
    const fault = retentionFault(keepKeysDays, { ...delivery, catchUpDays, namespaceDays: namespace, latenessDays });
    const kept = keepKeysDays === null ? 'for good' : `for ${keepKeysDays} days`;
    const name = `retention of ${job}`;
    rows.push(
      fault === null
        ? ok(name, `keys are kept ${kept}; catch-up ${catchUpDays} days, namespace ${namespace}`)
        : fail(name, fault, 'raise keepKeysDays in the rule, or lower what may still ask'),
    );
  }
  return rows;
}

/** Whether Node, PostgreSQL and Temporal read the clocks of the zones in use alike. None of them decides alone: the ledger does. */
export async function checkZones(db: Database, client: Client, registry: Registry): Promise<Check[]> {
  return (await compareZones(db, client, { registry })).map((standing) => {
    const { job, zone, facts, from, to, dispute } = standing;
    const check = `time zone of ${job}`;
    if (dispute === null)
      return ok(check, `${zone}: three tables agree from ${from} to ${to}; the ledger goes by ${facts}`);
    return warn(check, disputeText(standing, dispute), REMEDY_OF_DISPUTE);
  });
}

const REMEDY_OF_DISPUTE =
  'update whichever is behind the law (Node, PostgreSQL’s time zone data, Temporal’s server); what is stored keeps its place';

/** The catch-up window that the schedule has, whoever set it; without a schedule the one that it will get. Days. */
async function catchUpWindow(client: Client, job: string): Promise<number> {
  const found = await describeSchedule(client, job);
  return found === null ? CATCH_UP_DAYS : Math.ceil(found.policies.catchupWindow / DAY_MS);
}

const DAY_MS = 86_400_000;

const ATTRIBUTES = ['OnceperJob', 'OnceperPeriod', 'OnceperState'] as const;
/** INDEXED_VALUE_TYPE_KEYWORD of Temporal's API. */
const KEYWORD = 2;

async function checkSearchAttributes(client: Client): Promise<Check> {
  const { namespace } = client.options;
  const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace });
  const missing = ATTRIBUTES.filter((name) => customAttributes?.[name] === undefined);
  const wrong = ATTRIBUTES.filter((name) => !missing.includes(name) && customAttributes?.[name] !== KEYWORD);
  if (wrong.length > 0) {
    const remedy = `npx temporal operator search-attribute remove --name ${wrong[0]}, then start a worker`;
    return fail('search attributes', `${wrong.join(', ')} not of type Keyword`, remedy);
  }
  if (missing.length === 0) return ok('search attributes', ATTRIBUTES.join(', '));
  return warn('search attributes', `${missing.join(', ')} not registered`, 'npx onceper worker registers them');
}

async function checkWorker(client: Client, taskQueue: string): Promise<Check> {
  const polled = await lastPoll(client, taskQueue);
  const ago = polled === null ? null : between(polled, new Date().toISOString());
  if (ago !== null && ago < POLL_WITHIN_MS)
    return ok('worker', `task queue ${taskQueue} was polled ${inWords(ago)} ago`);
  const since = ago === null ? 'nobody polls it' : `nobody has polled it for ${inWords(ago)}`;
  return fail('worker', `task queue ${taskQueue}: ${since}, so nothing runs`, 'npx onceper worker');
}

/** Each job's schedule: there, not paused, and what the code says it must be. */
export async function checkSchedules(
  db: Database,
  client: Client,
  ask: { readonly registry: Registry; readonly taskQueue: string },
): Promise<Check[]> {
  const rows: Check[] = [];
  for (const job of ask.registry.ids) {
    const check = `schedule of ${job}`;
    rows.push(
      ...(await checked(check, async () =>
        (await listSchedules(db, client, { ...ask, jobs: [job] })).map((schedule) => scheduleRow(check, schedule)),
      )),
    );
  }
  return rows;
}

function scheduleRow(check: string, schedule: ListedSchedule): Check {
  const apply = `npx onceper schedule apply ${schedule.job}`;
  if (schedule.state === 'missing') return fail(check, 'there is none, so no run starts by itself', apply);
  if (schedule.drift.length > 0) return fail(check, `drifted: ${schedule.drift.join('; ')}`, apply);
  if (schedule.state === 'paused') {
    const note = schedule.note === null ? '' : ` ("${schedule.note}")`;
    return warn(check, `paused${note}: what falls due meanwhile waits until it is resumed`, unpause(schedule.job));
  }
  return ok(check, `${schedule.calendar}, ${schedule.zone}; next ${schedule.next[0] ?? 'never'}`);
}

function unpause(job: string): string {
  return `npx onceper schedule resume ${job} --reason "..."`;
}
