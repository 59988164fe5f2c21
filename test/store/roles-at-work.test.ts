import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deliveryState } from '../../activities/delivery.ts';
import { look } from '../../activities/epoch.ts';
import { expected } from '../../activities/expected.ts';
import { mustBeGranted, oursOn } from '../../src/drills/ours.ts';
import { importSample, type SampleMonths } from '../../src/drills/sample-month.ts';
import { createHttpGateway } from '../../src/gateway/http.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { listAudit } from '../../src/ops/audit/list.ts';
import { verifyAudit } from '../../src/ops/audit/verify.ts';
import { resolveEffect, retryEffect } from '../../src/ops/outbox.ts';
import { cleanOutbox } from '../../src/ops/outbox-clean.ts';
import { compareWithCounterparty } from '../../src/ops/rewind/compare.ts';
import { readKey } from '../../src/ops/show.ts';
import { explainKey } from '../../src/ops/why.ts';
import { applyDueWebhooks } from '../../src/relay/webhooks/apply.ts';
import { appendAudit } from '../../src/store/audit.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { freezeDelivery, readIdentity, thawDelivery } from '../../src/store/epoch.ts';
import { migrate } from '../../src/store/migrate.ts';
import { effectRecord } from '../../src/store/outbox-people.ts';
import { overprivileged } from '../../src/store/privileges.ts';
import { storeOneOff } from '../../src/store/rules.ts';
import { cancelAction } from '../../src/store/stop.ts';
import { storeWebhook } from '../../src/store/webhooks.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { servicesFor } from '../support/ledger.ts';
import { useTestBank } from '../support/simulator.ts';

const GROUPS = ['owner', 'worker', 'server', 'operator', 'auditor', 'reader'] as const;
type Group = (typeof GROUPS)[number];

let database: TestDatabase;
let superuser: pg.Client;
let folder: string;
let sample: SampleMonths;
const as = {} as Record<Group, Database>;
const bank = useTestBank();

beforeAll(async () => {
  database = await createTestDatabase();
  folder = mkdtempSync(path.join(tmpdir(), 'onceper-roles-'));
  superuser = new pg.Client({ connectionString: database.url });
  await superuser.connect();
  for (const group of GROUPS) as[group] = openDatabase({ url: await loginOf(group), name: group, max: 4 });
  await importSample({ db: as.owner, actor: 'os:dba', folder }, { merchants: 12, months: 1, subjectsPerSlice: 4 });
  // The owner loads the rule; what is settled is to come in by an operator's hand.
  await superuser.query('truncate settlement.transaction, settlement.merchant, settlement.import, settlement.period');
});
afterAll(async () => {
  for (const group of GROUPS) await as[group].close();
  for (const group of GROUPS) await superuser.query(`drop role ${nameOf(group)}`);
  await superuser.end();
  await database.drop();
  rmSync(folder, { recursive: true });
});

const nameOf = (group: string) => `${database.name}_${group}`;

/** Makes a login in a group, with the database's address for it. */
async function loginOf(group: string): Promise<string> {
  await superuser.query(`create role ${nameOf(group)} login password 'test' in role onceper_${group}`);
  const url = new URL(database.url);
  url.username = nameOf(group);
  url.password = 'test';
  return url.href;
}

async function forcedState(number: string): Promise<void> {
  await superuser.query('begin; set local session_replication_role = replica');
  await superuser.query(`update onceper.outbox set state = 'needs_attention' where number = $1`, [number]);
  await superuser.query('commit');
}

/** What the server itself said to a refused statement. */
const denied = { code: 'permission_denied', cause: expect.objectContaining({ code: '42501' }) };

describe('each login can do its work, and no more', () => {
  test('the server imports a file, and a worker settles, delivers and watches it', async () => {
    sample = await importSample(
      { db: as.server, actor: 'user:ann', folder },
      { merchants: 12, months: 1, subjectsPerSlice: 4 },
    );
    const ours = oursOn({ db: as.worker, actor: 'schedule:settlement' }, sample);
    const opened = await ours.open();
    expect(opened.decision).toBe('admitted');
    const grant = mustBeGranted(await ours.claim(opened.run));
    await ours.perform(grant, grant.slices);
    expect(await ours.close(grant)).toBe('done');
    expect((await ours.open()).decision).toBe('duplicate');
    const simulator = await bank.start();
    const terms = { keyWindowMs: 86_400_000, visibilityDelayMs: 1, timeoutMs: 5_000 };
    const gateway = createHttpGateway({ url: simulator.url, ...terms });
    await ours.deliver(gateway);
    await gateway.close();
    expect(bank.executed().size).toBeGreaterThan(0);
    const services = servicesFor(as.worker, [createSettlementJob()]);
    expect(await look(services, null)).toMatchObject({ audit: { seq: expect.any(String) } });
    await expected(services);
    await deliveryState(services, sample.key);
  });

  test('the server compares the ledger with what the counterparty has paid, and reads who the database is', async () => {
    const { url } = await bank.start();
    const gateway = createHttpGateway({ url, keyWindowMs: 86_400_000, visibilityDelayMs: 0, timeoutMs: 5_000 });
    const registry = createRegistry([createSettlementJob()]);
    const parts = { db: as.server, registry, gateway };
    const found = await compareWithCounterparty(parts, '1970-01-01T00:00:00Z', () => Promise.resolve());
    // Another counterparty, which has paid nobody.
    expect(found).toMatchObject({ known: 0, lost: [], twice: [] });
    expect(found.unlisted.length).toBeGreaterThan(0);
    await gateway.close();
    expect(await readIdentity(as.server)).toMatchObject({ timeline: 1 });
  });

  test('a worker stores and applies what the counterparty says', async () => {
    const { rows } = await as.worker.query<{ number: string }>(
      `select number from onceper.outbox where state = 'succeeded' order by number limit 1`,
    );
    const [paid] = rows;
    const body = JSON.stringify({
      type: 'transfer.returned',
      data: await transferOf(paid?.number ?? ''),
    });
    await storeWebhook(as.worker, { id: 'msg_1', type: 'transfer.returned', number: paid?.number ?? '', body });
    const events: unknown[] = [];
    const services = { db: as.worker, jobs: sample.registry };
    await applyDueWebhooks(services, 10, (event) => void events.push(event));
    expect((await effectRecord(as.worker, paid?.number ?? ''))?.state).toBe('returned');
  });

  async function transferOf(number: string) {
    const effect = await effectRecord(as.worker, number);
    const { amount, currency, destination } = JSON.parse(effect?.body ?? '{}') as Record<string, string>;
    return { id: effect?.counterpartyId, status: 'returned', reference: number, amount, currency, destination };
  }

  test('the server acts on effects, keys, schedules and a freeze, each audited', async () => {
    const { rows } = await as.server.query<{ number: string }>(
      `select number from onceper.outbox where state = 'succeeded' order by number limit 1`,
    );
    const number = rows[0]?.number ?? '';
    await forcedState(number);
    const by = { number, actor: 'user:ann', reason: 'bank letter' };
    await retryEffect(as.server, by);
    await forcedState(number);
    const stillHeld = await as.server.query(`select from settlement.posting where key = $1 and kind = 'paid'`, [
      sample.key,
    ]);
    expect(stillHeld.rowCount).toBeGreaterThan(0);
    await expect(
      transaction(as.server, {}, (tx) =>
        resolveEffect(tx, sample.registry, { ...by, fate: 'failed', counterpartyId: null }),
      ),
    ).rejects.toMatchObject({ code: 'constraint' });
    expect(await cancelAction(as.server, { ...by, key: sample.key, lockTimeout: 1_000 })).toMatchObject({
      kind: 'not_stoppable',
    });
    const oneOff = { job: 'settlement', at: '2030-01-01T02:00:00Z', reason: 'a rehearsal', actor: 'user:ann' };
    await transaction(as.server, {}, (tx) => storeOneOff(tx, oneOff));
    expect(await freezeDelivery(as.worker, 'a test')).toBe(true);
    expect(await thawDelivery(as.server)).toBe(true);
    expect((await cleanOutbox(as.server, { olderMs: 86_400_000 })).kind).toBe('done');
    expect((await listAudit(as.server, { ...ANY, actor: 'user:ann' })).entries.map(({ verb }) => verb)).toEqual([
      'one-off',
      'retry',
      'import',
    ]);
  });

  test('an auditor verifies and lists the audit, and reads no merchant', async () => {
    expect(await verifyAudit(as.auditor, { anchors: [], key: null })).toMatchObject({ ok: true });
    expect((await listAudit(as.auditor, ANY)).entries.length).toBeGreaterThan(3);
    expect((await readKey(as.auditor, sample.key)).attempts).toHaveLength(1);
    await expect(as.auditor.query('select from settlement.merchant')).rejects.toMatchObject(denied);
  });

  test('a reader reads keys and their stories, and not the audit', async () => {
    expect((await explainKey(as.reader, sample.key)).key).toBe(sample.key);
    await expect(listAudit(as.reader, ANY)).rejects.toMatchObject(denied);
  });

  test('nobody at work may change or delete an entry of the audit, or move its head', async () => {
    for (const group of ['worker', 'server', 'operator', 'auditor', 'reader'] as const) {
      for (const statement of [
        `update onceper.audit set actor = 'os:eve'`,
        'delete from onceper.audit',
        'truncate onceper.audit',
        'update onceper.audit_head set seq = seq + 1',
      ]) {
        await expect(as[group].query(statement), `${group}: ${statement}`).rejects.toMatchObject(denied);
      }
    }
    const entry = { actor: 'os:eve', verb: 'release', job: null, key: null, run: null, detail: {} } as const;
    await expect(appendAudit(as.auditor, entry)).rejects.toMatchObject(denied);
  });
});

const ANY = { job: null, key: null, actor: null, verb: null, from: null, to: null, before: null, limit: 100 };

describe('a worker does not start as whoever could unbind it', () => {
  /** Another database of the server's own, so that it does not say that it serves one machine. */
  const asked = async (login: string, isEmbedded: boolean) => {
    const client = new pg.Client({ connectionString: login });
    await client.connect();
    try {
      await client.query(`set onceper.embedded = '${isEmbedded ? 'on' : 'off'}'`);
      const query = async <Row>(text: string) => {
        const { rows, rowCount } = await client.query(text);
        return { rows: rows as Row[], rowCount: rowCount ?? 0 };
      };
      return await overprivileged({ query });
    } finally {
      await client.end();
    }
  };
  const urlOf = (group: Group) => {
    const url = new URL(database.url);
    url.username = nameOf(group);
    url.password = 'test';
    return url.href;
  };

  test('a superuser and an owner are told, a login of the worker’s group is not', async () => {
    expect(await asked(database.url, false)).toMatchObject({ as: 'superuser' });
    expect(await asked(urlOf('owner'), false)).toEqual({ login: nameOf('owner'), as: 'owner' });
    expect(await asked(urlOf('worker'), false)).toBeNull();
  });

  test('a server of one machine is excepted', async () => {
    expect(await asked(database.url, true)).toBeNull();
  });
});

test('a login that is no superuser migrates a database of its own, and becomes a member of the owners', async () => {
  const login = nameOf('dba');
  const other = `${database.name}_own`;
  await superuser.query(`create role ${login} login createrole password 'test'`);
  await superuser.query(`grant onceper_owner to ${login}`);
  await superuser.query(`create database ${other} owner ${login}`);
  const url = new URL(database.url);
  Object.assign(url, { username: login, password: 'test', pathname: `/${other}` });
  try {
    const { applied } = await migrate(url.href);
    expect(applied.length).toBeGreaterThan(8);
    const db = openDatabase({ url: url.href, name: 'own', max: 1 });
    const { rows } = await db.query<{ owner: string }>(
      `select distinct tableowner::text as owner from pg_tables where schemaname in ('onceper', 'settlement')`,
    );
    expect(rows).toEqual([{ owner: 'onceper_owner' }]);
    await db.close();
  } finally {
    await superuser.query(`drop database ${other} with (force)`);
    await superuser.query(`drop role ${login}`);
  }
});

test('the migrations name each group once, and give none of them to a person', () => {
  const files = ['0008_audit.sql', '0030_server_role.sql'];
  const sql = files
    .map((file) => readFileSync(path.join(import.meta.dirname, '../../migrations', file), 'utf8'))
    .join('');
  for (const group of GROUPS) expect(sql).toContain(`'onceper_${group}'`);
});
