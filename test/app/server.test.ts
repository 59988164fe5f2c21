import { createHmac, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import type { ApprovalKind } from '../../src/kernel/approval.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait.ts';
import { as, documentOf, type ErrorDocument, NOBODY, typed } from './command-line.ts';
import { MONTHLY_JOB, type Served, serve } from './served.ts';

const KEY = 'settlement:2026-09';
const JOBS = [createSettlementJob()];
let database: TestDatabase;
let db: Database;
let served: Served;

beforeAll(async () => {
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'test', max: 2 });
  for (const { text, values } of MONTHLY_JOB) await db.query(text, values);
  served = await start();
});
afterAll(async () => {
  await served.stop();
  await db.close();
  await database.drop();
});

const start = (options: Parameters<typeof serve>[1] = {}, given: Readonly<Record<string, string>> = {}) =>
  serve({ DATABASE_URL: database.url, TEMPORAL_ADDRESS: NOBODY, ...given }, { jobs: JOBS, ...options });

/** The token of a person with some roles. */
async function token(subject: string, ...roles: readonly string[]): Promise<string> {
  return (await as(subject, ...roles))['ONCEPER_TOKEN'] ?? '';
}

const post = async (path: string, by: string | null, body: unknown = {}, on = served) =>
  on.ask(`/api/v1/${path}`, { method: 'POST', token: by, body: JSON.stringify(body) });
const codeOf = (answered: { readonly text: string }) => (JSON.parse(answered.text) as ErrorDocument).error.code;

interface Shown {
  readonly approval: { readonly id: string; readonly digest: string; readonly kind: ApprovalKind };
}

/** A request that `ann` makes through the API. */
async function ask(period: string): Promise<Shown['approval']> {
  const range = { from: period, to: period, reason: 'missed' };
  const asked = await post('backfill/request', await token('ann', 'operator'), {
    arguments: ['settlement'],
    options: range,
  });
  expect(asked.status).toBe(200);
  return (JSON.parse(asked.text) as Shown).approval;
}

const decide = async (id: string, digest: string, by: string | null) =>
  post('approvals/approve', by, { arguments: [id], options: { digest } });

async function audited(
  code: string,
): Promise<{ readonly actor: string; readonly detail: { readonly command: string } }[]> {
  const { rows } = await db.query<{ actor: string; detail: { code: string; command: string } }>(
    `select actor, detail::jsonb as detail from onceper.audit where verb = 'refuse' order by seq`,
  );
  return rows.filter(({ detail }) => detail.code === code);
}

describe('a person at the API', () => {
  test('is who the token says, and the answer is the document that --json prints', async () => {
    const { id } = await ask('2026-08');
    const reader = await token('vic', 'viewer');
    const got = await served.ask('/api/v1/approvals/list?state=requested&limit=5', { token: reader });
    const direct = await typed(['approvals', 'list', '--json', '--state', 'requested'], { DATABASE_URL: database.url });
    expect(got.text).toBe(direct.out);
    expect(got.text).toContain('"requestedBy":"user:ann"');
    expect(got.headers).toMatchObject({
      'onceper-exit-code': '0',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    expect((await served.ask(`/api/v1/approvals/show/${id}`, { token: reader })).status).toBe(200);
  });

  test('never acts as whoever started the server, by a token of its environment or without one', async () => {
    const own = await start({}, { ONCEPER_TOKEN: await token('root', 'viewer', 'operator', 'approver') });
    expect(codeOf(await own.ask('/api/v1/periods/settlement'))).toBe('token_needed');
    const asked = await post('backfill/request', await token('vic', 'viewer'), { arguments: ['settlement'] }, own);
    expect(asked.status).toBe(400);
    await own.stop();
  });

  test('who asks twice has asked once, and who approves twice has approved once', async () => {
    const first = await ask('2026-09');
    expect(await ask('2026-09')).toEqual(first);
    const boss = await token('boss', 'approver');
    expect((await decide(first.id, first.digest, boss)).status).toBe(200);
    const again = await decide(first.id, first.digest, boss);
    expect([again.status, codeOf(again)]).toEqual([409, 'already_decided']);
  });

  test('can’t approve their own request, nor with another token of theirs', async () => {
    const { id, digest } = await ask('2026-10');
    const both = await token('ANN', 'operator', 'approver');
    const answered = await decide(id, digest, both);
    expect([answered.status, codeOf(answered)]).toEqual([409, 'own_request']);
    expect((await audited('own_request')).map(({ actor }) => actor)).toContain('user:ann');
  });

  test('can’t approve what was edited after it was seen', async () => {
    const { id, digest } = await ask('2026-11');
    const edited = await post('approvals/edit', await token('ed', 'operator'), {
      arguments: [id],
      options: { reason: 'more came in' },
    });
    expect(edited.status).toBe(200);
    const answered = await decide(
      id,
      `${digest.slice(0, -1)}${digest.endsWith('0') ? '1' : '0'}`,
      await token('boss', 'approver'),
    );
    expect([answered.status, codeOf(answered)]).toEqual([409, 'digest_differs']);
    expect((await audited('digest_differs')).map(({ actor }) => actor)).toContain('user:boss');
  });

  test('without the role is refused, and in the audit under their name once a minute', async () => {
    const vic = await token('vic', 'viewer');
    for (let times = 0; times < 3; times += 1) {
      const answered = await decide('a-1', 'f'.repeat(64), vic);
      expect([answered.status, codeOf(answered)]).toEqual([403, 'forbidden']);
    }
    expect((await audited('forbidden')).map(({ actor, detail }) => [actor, detail.command])).toEqual([
      ['user:vic', 'approvals approve'],
    ]);
  });
});

/** A token that claims to be the boss, made in ways in which the key does not make one. */
async function forgeries(): Promise<Readonly<Record<string, string>>> {
  const claims = { roles: ['viewer', 'operator', 'approver'] };
  const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const body = base64({ ...claims, sub: 'boss', aud: 'onceper', exp });
  const { ONCEPER_TOKEN_KEY = '' } = await as('x');
  const signed = `${base64({ alg: 'HS256' })}.${body}`;
  const hmac = createHmac('sha256', readFileSync(ONCEPER_TOKEN_KEY)).update(signed).digest('base64url');
  const real = await token('vic', 'approver');
  const [head = '', , signature = ''] = real.split('.');
  const other = new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA' }).setSubject('boss').setAudience('onceper');
  return {
    'another key': await other.setExpirationTime('1h').sign(generateKeyPairSync('ed25519').privateKey),
    'no algorithm': `${base64({ alg: 'none' })}.${body}.`,
    'the key’s file as a secret': `${signed}.${hmac}`,
    'claims under another’s signature': `${head}.${body}.${signature}`,
    'no token at all': 'x',
  };
}

describe('a forged token', () => {
  test('decides nothing, whichever way it is forged, and the attempt is in the audit', async () => {
    const { id, digest } = await ask('2026-11');
    const tokens = await forgeries();
    expect(Object.keys(tokens)).toHaveLength(5);
    for (const [how, forged] of Object.entries(tokens)) {
      const answered = await decide(id, digest, forged);
      // A token that ends in a dot is none by its form.
      expect([how, answered.status]).toEqual([how, 401]);
      expect(answered.headers['www-authenticate']).toContain('Bearer');
      expect(answered.text).not.toContain(forged.length > 1 ? forged : 'never');
    }
    const { rows } = await db.query<{ state: string }>('select state from onceper.approval where id = $1', [id]);
    expect(rows).toEqual([{ state: 'requested' }]);
    expect(await audited('token_refused')).toMatchObject([
      { actor: 'server:dev', detail: { command: 'approvals approve' } },
    ]);
  });

  test('or none is not audited where it would have read', async () => {
    expect((await served.ask('/api/v1/audit/list', { token: 'x' })).status).toBe(401);
    expect((await audited('token_refused')).filter(({ detail }) => detail.command === 'audit list')).toEqual([]);
  });
});

describe('the command line', () => {
  test('says what to do where the server is away, is cut off, or is another', async () => {
    const away = await typed(['show', KEY], { ONCEPER_SERVER: `http://${NOBODY}` });
    expect([away.code, away.err]).toEqual([1, expect.stringMatching(/^server_unreachable: .*npx onceper server/)]);
    const far = await typed(['show', KEY], { ONCEPER_SERVER: 'http://server.example' });
    expect([far.code, far.err]).toEqual([2, expect.stringMatching(/^server_plain_http: /)]);
    const nobody = await typed(['show', KEY], { ONCEPER_SERVER: served.url, ONCEPER_TOKEN: '' });
    expect([nobody.code, nobody.err]).toEqual([3, expect.stringMatching(/^token_needed: /)]);
  });

  test('a server that goes away in the middle is told from one that is not there, and asking again is one request', async () => {
    const mortal = await start();
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const held = transaction(db, {}, async (tx) => {
      await tx.query('lock table onceper.approval in access exclusive mode');
      await released;
    });
    const line = [
      'backfill',
      'request',
      'settlement',
      '--from',
      '2026-08',
      '--to',
      '2026-08',
      '--reason',
      'again',
      '--json',
    ];
    const person = { ...(await as('ivy', 'operator')), ONCEPER_SERVER: mortal.url };
    const cut = typed(line, person);
    await waitFor(mortalWaits, { what: 'the command to be under way' });
    const stopped = mortal.stop(0);
    expect(documentOf<ErrorDocument>(await cut).error.code).toBe('server_lost');
    release();
    await held;
    await stopped;
    const next = await start();
    const again = { ...person, ONCEPER_SERVER: next.url };
    const first = documentOf<Shown>(await typed(line, again));
    expect(documentOf<Shown>(await typed(line, again)).approval).toEqual(first.approval);
    await next.stop();
  });
});

/** Whether a command waits for the table that the test holds. */
async function mortalWaits(): Promise<boolean> {
  const { rows } = await db.query<{ waits: boolean }>(
    `select exists (select from pg_locks where not granted and relation = 'onceper.approval'::regclass) as waits`,
  );
  return rows[0]?.waits === true;
}
