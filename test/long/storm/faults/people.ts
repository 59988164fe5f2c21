import type { Draw } from '../../../../src/jobs/settlement/sample/draw.ts';
import type { Field } from '../field.ts';
import { askAndApprove, requestOf } from '../people.ts';
import type { Kind } from './fault.ts';

function monthOf({ asked }: Field, draw: Draw): string | null {
  const months = [...asked];
  return months[draw.between(0, Math.max(0, months.length - 1))] ?? null;
}

/** The firing that closes a month by the rule: two at night on the first of the next, in Shanghai. */
function firingOf(month: string): string {
  const [year = 0, number = 0] = month.split('-').map(Number);
  return new Date(Date.UTC(year, number, 1, 2 - 8)).toISOString().replace('.000Z', 'Z');
}

async function runTwice(field: Field, draw: Draw): Promise<boolean> {
  const month = monthOf(field, draw);
  if (month === null) return false;
  const { people } = field;
  const line = ['run', 'settlement', '--period', month];
  const both = await Promise.all([people.type('alice', line), people.type('bob', line)]);
  return both.some(({ code }) => code === 0 || code === 5);
}

/** A start by whoever can reach Temporal, several times, which claims another's name and states something: neither may be believed. */
async function rawStarts({ temporal, asked }: Field, draw: Draw): Promise<boolean> {
  const [month] = [...asked].slice(draw.between(0, Math.max(0, asked.size - 1)));
  if (month === undefined) return false;
  const claimed = { actor: 'alice', overrides: { merchants: 'none' } };
  const start = (id: string) => ({ id, door: 'run', scheduledAt: firingOf(month), ...claimed });
  await temporal.withClient(async (client) => {
    const ids = [1, 2, 3].map((n) => `raw-${draw.between(1, 1e9)}-${n}`);
    for (const id of ids) {
      const args = [{ job: 'settlement', start: start(id) }];
      await client.workflow.start('tick', { workflowId: id, taskQueue: 'storm', args });
    }
  });
  return true;
}

async function backfill({ people, asked }: Field, draw: Draw): Promise<boolean> {
  const months = [...asked].toSorted();
  const from = months[draw.between(0, Math.max(0, months.length - 1))];
  const to = months.at(-1);
  if (from === undefined || to === undefined) return false;
  const line = ['backfill', 'request', 'settlement', '--from', from, '--to', to, '--reason', 'storm'];
  const request = requestOf(await people.type('alice', line));
  if (request === null) return false;
  // Two people click at once, and one of them clicks twice.
  const approve = ['approvals', 'approve', request.id, '--digest', request.digest];
  const clicks = await Promise.all(['bob', 'bob', 'carol'].map((person) => people.type(person, approve)));
  return clicks.some(({ code }) => code === 0);
}

/** Who asked approves, which is refused; then somebody approves what was edited since they looked, which is refused too. */
async function wrongApprovals({ people, asked }: Field, draw: Draw): Promise<boolean> {
  const [month] = [...asked].slice(draw.between(0, Math.max(0, asked.size - 1)));
  if (month === undefined) return false;
  const line = ['backfill', 'request', 'settlement', '--from', month, '--to', month, '--reason', 'storm'];
  const request = requestOf(await people.type('alice', line));
  if (request === null) return false;
  const own = await people.type('alice', ['approvals', 'approve', request.id, '--digest', request.digest]);
  const digest = `${request.digest.slice(0, -1)}${request.digest.endsWith('0') ? '1' : '0'}`;
  const other = await people.type('bob', ['approvals', 'approve', request.id, '--digest', digest]);
  await people.type('alice', ['approvals', 'reject', request.id, '--reason', 'storm']);
  return own.code !== 0 && other.code !== 0;
}

async function takeover(field: Field, draw: Draw): Promise<boolean> {
  const month = monthOf(field, draw);
  if (month === null) return false;
  const asked = await askAndApprove(field.people, ['takeover', `settlement:${month}`, '--reason', 'storm']);
  return asked !== null;
}

/** What may not be done to a key that is done: it is asked for, and nothing comes of it. */
async function skipDone(field: Field, draw: Draw): Promise<boolean> {
  const rows = await field.postgres.query<{ key: string }>(
    `select key from onceper.action where state = 'done' and adj is null`,
  );
  const key = rows[draw.between(0, Math.max(0, rows.length - 1))]?.key;
  if (key === undefined) return false;
  const { code } = await field.people.type('alice', ['skip', key, '--reason', 'storm']);
  return code !== 0;
}

/** It closes the last month that has ended, whose file must be there. */
async function scheduleTrigger({ temporal, asked, load }: Field): Promise<boolean> {
  if (asked.size < load.months.length) return false;
  await temporal.withClient((client) => client.schedule.getHandle('settlement').trigger('ALLOW_ALL'));
  return true;
}

async function adjust(field: Field, draw: Draw): Promise<boolean> {
  const rows = await field.postgres.query<{ key: string; merchant: string; currency: string }>(
    `select key, merchant, currency from settlement.line order by key, merchant, currency limit 400`,
  );
  const line = rows[draw.between(0, Math.max(0, rows.length - 1))];
  if (line === undefined) return false;
  const posting = `${line.merchant}:${line.currency}:fees:${draw.between(1, 500)}`;
  const approved = await askAndApprove(field.people, ['adjust', line.key, '--posting', posting, '--reason', 'storm']);
  return approved?.code === 0;
}

async function releaseHold(field: Field, draw: Draw): Promise<boolean> {
  const rows = await field.postgres.query<{ number: string }>(
    `select o.number from onceper.outbox o where o.state in ('failed', 'returned') order by number limit 100`,
  );
  const number = rows[draw.between(0, Math.max(0, rows.length - 1))]?.number;
  if (number === undefined) return false;
  const approved = await askAndApprove(field.people, ['hold', 'release', number, '--reason', 'storm']);
  return approved?.code === 0;
}

/** Statements that a hand could type, each of which undoes what was promised. */
const FORGED = [
  `delete from onceper.action`,
  `update onceper.outbox set body = replace(body, '"amount":"', '"amount":"9')`,
  `delete from onceper.outbox`,
  `update settlement.line set payout = payout + 1`,
  `update onceper.audit set actor = 'bob'`,
  `update onceper.epoch set epoch = epoch - 1`,
  `update onceper.approval set state = 'approved' where state in ('rejected', 'expired', 'stale')`,
] as const;

async function forge({ postgres }: Field, draw: Draw): Promise<boolean> {
  const statement = FORGED[draw.between(0, FORGED.length - 1)] ?? FORGED[0];
  try {
    const forged = await postgres.query(`${statement} returning 1 as forged`);
    if (forged.length === 0) return false;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === '23001' || code === '23514') return true;
    throw error;
  }
  throw new Error(`the ledger took a forgery: ${statement}`);
}

/** What people do at the wrong moment, twice, or against the rules. */
export const PEOPLE_FAULTS: readonly Kind[] = [
  { name: 'one run typed twice at once', lanes: ['people'], weight: 1, strike: runTwice },
  { name: 'starts by a raw client of Temporal', lanes: ['requests'], weight: 4, isShort: true, strike: rawStarts },
  { name: 'a backfill approved by three clicks', lanes: ['people'], weight: 1, strike: backfill },
  { name: 'an approval by the asker, or of another digest', lanes: ['people'], weight: 1, strike: wrongApprovals },
  { name: 'a takeover', lanes: ['people'], weight: 1, strike: takeover },
  { name: 'a skip of what is done', lanes: ['people'], weight: 1, strike: skipDone },
  {
    name: 'the schedule triggered by hand',
    lanes: ['requests'],
    weight: 3,
    when: 'late',
    strike: scheduleTrigger,
  },
  { name: 'an adjustment', lanes: ['people'], weight: 1, when: 'late', strike: adjust },
  { name: 'money on hold released', lanes: ['people'], weight: 1, when: 'late', strike: releaseHold },
  { name: 'rows forged by hand', lanes: ['requests'], weight: 4, isShort: true, strike: forge },
];
