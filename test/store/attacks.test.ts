import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { insert, storeLegalRows } from './by-hand-rows.ts';

const GROUPS = ['worker', 'server', 'break_glass', 'operator', 'auditor', 'reader'] as const;
type Group = (typeof GROUPS)[number];

let database: TestDatabase;
let superuser: pg.Client;
const as = {} as Record<Group, pg.Client>;
const nameOf = (group: Group) => `r_${database.name.slice(-32)}_${group}`;

/** A token that nobody has signed; that the audit would tell, and whose it is the database tells. */
const tokenOf = (sub: string, exp = 4_000_000_000) =>
  `e30.${Buffer.from(JSON.stringify({ sub, exp })).toString('base64url')}.c2ln`;

beforeAll(async () => {
  database = await createTestDatabase();
  superuser = new pg.Client({ connectionString: database.url });
  await superuser.connect();
  await superuser.query('begin');
  const query = async <Row>(text: string, values?: readonly unknown[]) => {
    const { rows, rowCount } = await superuser.query(text, values === undefined ? undefined : [...values]);
    return { rows: rows as Row[], rowCount: rowCount ?? 0 };
  };
  await storeLegalRows({ query });
  await superuser.query(`update onceper.outbox set state = 'succeeded', counterparty_id = 'tr_1'`);
  await superuser.query(`update onceper.epoch set frozen_at = clock_timestamp(), frozen_reason = 'a restore'`);
  const undecided = { state: 'requested', decided_by: null, decided_at: null, executed_by: null, executed_at: null };
  for (const id of ['open-1', 'open-2', 'open-3']) {
    const request = insert('onceper.approval', { ...undecided, id, subject: id, expires_at: '2099-01-01T00:00:00Z' });
    await superuser.query(request.text, [...request.values]);
  }
  await superuser.query('commit; set session_replication_role = origin');
  for (const group of GROUPS) {
    await superuser.query(`create role ${nameOf(group)} login password 'test' in role onceper_${group}`);
    const url = new URL(database.url);
    Object.assign(url, { username: nameOf(group), password: 'test' });
    as[group] = new pg.Client({ connectionString: url.href });
    await as[group].connect();
  }
});
afterAll(async () => {
  for (const group of GROUPS) {
    await as[group].end();
    await superuser.query(`drop owned by ${nameOf(group)}; drop role ${nameOf(group)}`);
  }
  await superuser.end();
  await database.drop();
});

/** The constraint, or else the privilege, that refused a statement to a login; null where nothing did. Nothing of it is kept. */
async function refusedTo(group: Group, text: string): Promise<string | null> {
  await as[group].query('begin');
  try {
    await as[group].query(text);
    return null;
  } catch (error) {
    const { code, constraint } = error as { code?: string; constraint?: string };
    return constraint ?? (code === '42501' ? 'privilege' : String(error));
  } finally {
    await as[group].query('rollback');
  }
}

const APPROVE = (by: string, id = 'open-1') =>
  `update onceper.approval set state = 'approved', decided_by = '${by}', decided_at = clock_timestamp() where id = '${id}'`;
const prove = (token: string, by: string, id = 'open-1') =>
  `insert into onceper.decision_proof (approval, revision, verb, actor, token) values ('${id}', 1, 'approve', '${by}', '${token}');`;
const REQUEST = insert('onceper.approval', { id: 'x', subject: 'x' });
const typedIn = ({ text, values }: typeof REQUEST) =>
  values.reduceRight<string>(
    (sql, value, at) => sql.replace(`$${at + 1}`, pg.escapeLiteral(String(value)).replace("'null'", 'null')),
    text,
  );
const EFFECT = {
  number: 'settlement:2026-08:m-9:GBP:payout',
  subject: 'm-9',
  state: 'pending',
  attempts: 0,
  first_sent_at: null,
};
const POSTING = { merchant: 'm-2', amount: 7_798_936 };
const ALL = GROUPS;
const PEOPLE = ['operator', 'auditor', 'reader'] as const;

/** What was tried, with which logins, and what must refuse it where it is not for want of a privilege. */
const ATTACKS: readonly (readonly [string, readonly Group[], () => string, readonly string[]])[] = [
  ['approve by an update', ['server'], () => APPROVE('user:bob'), ['approval_decision_is_proven']],
  ['approve by an update', ['worker', ...PEOPLE], () => APPROVE('user:bob'), ['privilege']],
  [
    'approve with another’s token',
    ['server'],
    () => prove(tokenOf('eve'), 'user:bob') + APPROVE('user:bob'),
    ['decision_proof_of_its_actor'],
  ],
  [
    'approve as another than the token’s',
    ['server'],
    () => prove(tokenOf('eve'), 'user:eve') + APPROVE('user:bob'),
    ['approval_decision_is_proven'],
  ],
  [
    'approve with an old token',
    ['server'],
    () => prove(tokenOf('bob', 1), 'user:bob') + APPROVE('user:bob'),
    ['decision_proof_in_time'],
  ],
  [
    'approve with a proof of another request',
    ['server'],
    () => prove(tokenOf('bob'), 'user:bob', 'open-2') + APPROVE('user:bob'),
    ['approval_decision_is_proven'],
  ],
  [
    'expire what is in time',
    ['worker', 'server', 'break_glass'],
    () => `update onceper.approval set state = 'expired' where id = 'open-1'`,
    ['approval_expires_in_time'],
  ],
  [
    'insert an executed request',
    ['worker', 'server', 'break_glass'],
    () => typedIn(REQUEST),
    ['transition_birth', 'approval_asked_by_the_logins'],
  ],
  [
    'ask in another’s name',
    ['worker'],
    () => `insert into onceper.approval (id, kind, subject, job, ask, reason, plan, digest, requested_by, edited_by, expires_at)
     values ('y', 'skip', 'y', 'settlement', '{"run":"run-1"}', 'x', '{}', repeat('0', 64), 'user:ann', 'user:ann', clock_timestamp() + interval '1 day')`,
    ['approval_asked_by_the_logins'],
  ],
  [
    'pay again what is paid',
    ['worker', 'server', 'break_glass'],
    () => `update onceper.outbox set state = 'pending'`,
    ['transition_known'],
  ],
  [
    'write an effect of one’s own',
    ['worker'],
    () => typedIn(insert('onceper.outbox', EFFECT)),
    ['outbox_in_its_slice'],
  ],
  [
    'write one after touching its key',
    ['worker'],
    () =>
      `update onceper.action set delivering = true where key = 'settlement:2026-08'; ${typedIn(insert('onceper.outbox', EFFECT))}`,
    ['outbox_in_its_slice'],
  ],
  [
    'add a slice to a done key',
    ['worker'],
    () =>
      `insert into onceper.slice (key, slice, first_subject, last_subject) values ('settlement:2026-08', 9, 'a', 'b')`,
    ['slice_before_the_end'],
  ],
  [
    'type in a posting',
    ['server', 'break_glass'],
    () => typedIn(insert('settlement.assigned_posting', POSTING)),
    ['assigned_posting_needs_execution'],
  ],
  [
    'type in a posting',
    ['worker', ...PEOPLE],
    () => typedIn(insert('settlement.assigned_posting', POSTING)),
    ['privilege'],
  ],
  [
    'write to the audit as a person',
    ['worker'],
    () => `insert into onceper.audit (actor, verb, run, detail) values ('user:ann', 'held', 'run-1', '{}')`,
    ['audit_actor_is_the_logins'],
  ],
  [
    'lift a freeze',
    ['worker'],
    () => 'update onceper.epoch set frozen_at = null, frozen_reason = null',
    ['epoch_thawed_for_a_person'],
  ],
  ['lift a freeze', PEOPLE, () => 'update onceper.epoch set frozen_at = null, frozen_reason = null', ['privilege']],
  ['read the tokens', ALL, () => 'select token from onceper.decision_proof', ['privilege']],
  [
    'be somebody else by a setting',
    ['server'],
    () => `set local onceper.embedded = 'on'; ${APPROVE('user:bob')}`,
    ['approval_decision_is_proven'],
  ],
  [
    'change what may follow what',
    ALL,
    () => `insert into onceper.transition values ('effect', 'succeeded', 'pending')`,
    ['privilege'],
  ],
];

const TRIED = ATTACKS.flatMap(([what, groups, text, by]) => groups.map((group) => ({ what, group, text, by })));

test.each(TRIED)('a login of the $group may not $what', async ({ group, text, by }) => {
  expect(by).toContain(await refusedTo(group, text()));
});

test('a person’s login writes to no table at all', async () => {
  const { rows } = await superuser.query<{ may: string }>(
    `select role || ' ' || verb || ' ' || c.oid::regclass as may
       from pg_class c, unnest($1::text[]) role, unnest(array['insert', 'update']) verb
      where c.relnamespace in ('onceper'::regnamespace, 'settlement'::regnamespace) and c.relkind in ('r', 'v', 'p')
        and (has_any_column_privilege('onceper_' || role, c.oid, verb) or has_table_privilege('onceper_' || role, c.oid, 'delete, truncate'))`,
    [PEOPLE],
  );
  expect(rows).toEqual([]);
});

test('the server decides with a token of the decider, which is shown only when its time is over', async () => {
  await as.server.query('begin');
  await as.server.query(prove(tokenOf('BOB'), 'user:bob') + APPROVE('user:bob'));
  const { rows } = await as.server.query(
    `select token, login from onceper.proofs() where approval = 'open-1' and verb = 'approve'`,
  );
  expect(rows).toEqual([{ token: null, login: nameOf('server') }]);
  await as.server.query('commit');
});

test('a break-glass login decides without one, and that is written down for good', async () => {
  await as.break_glass.query(APPROVE('user:bob', 'open-2'));
  const { rows } = await as.auditor.query(
    `select login, login_as, token from onceper.proofs() where approval = 'open-2'`,
  );
  expect(rows).toEqual([{ login: nameOf('break_glass'), login_as: 'break_glass', token: null }]);
});
