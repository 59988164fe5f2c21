import { readdirSync } from 'node:fs';
import { request as overHttp } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProgram } from '../../src/app/cli.ts';
import { NEEDS } from '../../src/app/permissions.ts';
import { NAMES_FILE } from '../../src/app/server/named-files.ts';
import { commandAt } from '../../src/app/server/typed-words.ts';
import { createSettlementJob } from '../../src/jobs/settlement/settlement.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait.ts';
import { as, type ErrorDocument, NOBODY } from './command-line.ts';
import { type Served, serve } from './served.ts';

let database: TestDatabase;
let served: Served;

beforeAll(async () => {
  database = await createTestDatabase();
  served = await start();
});
afterAll(async () => {
  await served.stop();
  await database.drop();
});

const start = (options: Parameters<typeof serve>[1] = {}, given: Readonly<Record<string, string>> = {}) =>
  serve(
    { DATABASE_URL: database.url, TEMPORAL_ADDRESS: NOBODY, ...given },
    { jobs: [createSettlementJob()], ...options },
  );

/** The token of a person with some roles. */
async function token(subject: string, ...roles: readonly string[]): Promise<string> {
  return (await as(subject, ...roles))['ONCEPER_TOKEN'] ?? '';
}

const post = async (path: string, by: string | null, body: unknown = {}, on = served) =>
  on.ask(`/api/v1/${path}`, { method: 'POST', token: by, body: JSON.stringify(body) });
const codeOf = (answered: { readonly text: string }) => (JSON.parse(answered.text) as ErrorDocument).error.code;

describe('a hostile request', () => {
  test.each([
    '/api/v1/../../etc/passwd',
    '/api/v1/%2e%2e/%2e%2e/etc/passwd',
    '/api/v1/%',
    '/api/v1/',
    '/api/v1/constructor',
    '/api/v1/approvals',
    '/api/v1/approvals%20list',
    '/api/v1/worker',
    '/api/v1/migrate',
    '/api/v1/drill/all',
    '/api/v1/server',
    '/api/v1/token/issue',
    '/api/v2/doctor',
    '/',
  ])('for %s finds nothing', async (path) => {
    const all = await token('boss', 'viewer', 'operator', 'approver');
    for (const method of ['GET', 'POST']) {
      const answered = await served.ask(path, { method, token: all });
      expect([answered.status, codeOf(answered)]).toEqual([404, 'unknown_route']);
    }
  });

  test('smuggles no option in by an argument, and none that the command does not have', async () => {
    const vic = await token('vic', 'viewer', 'operator');
    const dashed = await served.ask('/api/v1/show/--help', { token: vic });
    expect([dashed.status, codeOf(dashed)]).toEqual([400, 'malformed_key']);
    for (const options of [{ 'no-such': 'x' }, { json: true }, { key: true }, { limit: ['1', 'x'] }, { help: true }]) {
      const answered = await post('approvals/list', vic, { options });
      expect([answered.status, codeOf(answered)]).toEqual([400, 'usage']);
    }
    const written = await post('backfill/request', vic, { arguments: ['settlement', '--from=2026-08'] });
    expect(written.status).toBe(400);
  });

  test('reads no file of the server’s', async () => {
    const all = await token('all', 'viewer', 'operator');
    for (const [path, body] of [
      ['import', { arguments: ['/etc/passwd'], options: { source: 'generic' } }],
      ['audit/verify', { options: { anchor: '/etc/passwd' } }],
    ] as const) {
      const answered = await post(path, all, body);
      expect([answered.status, codeOf(answered)]).toEqual([400, 'file_needed']);
    }
  });

  test('writes nothing by GET, also where an option decides that it writes', async () => {
    const all = await token('all', 'viewer', 'operator', 'approver');
    for (const path of ['approvals/approve/a-1?digest=x', 'doctor?reconcile-rewind', 'approvals/reject/a-1?reason=x']) {
      const answered = await served.ask(`/api/v1/${path}`, { token: all });
      expect([path, answered.status, codeOf(answered)]).toEqual([path, 405, 'method_not_allowed']);
    }
  });

  test('of a page in a browser is refused, whatever token it has', async () => {
    const all = await token('all', 'viewer');
    const answered = await served.ask('/api/v1/doctor', { token: all, headers: { origin: 'https://evil.example' } });
    expect([answered.status, codeOf(answered)]).toEqual([403, 'origin_refused']);
    expect(answered.headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('with a body or headers without end is cut', async () => {
    const all = await token('all', 'viewer');
    const long = await served.ask('/api/v1/approvals/list', { method: 'POST', token: all, body: ' '.repeat(300_000) });
    expect([long.status, codeOf(long)]).toEqual([413, 'body_too_large']);
    const heavy = await served.ask('/api/v1/doctor', { headers: { 'x-long': 'x'.repeat(20_000) } });
    expect(heavy.status).toBe(431);
    const wrong = await served.ask('/api/v1/approvals/list', { method: 'POST', token: all, body: '[' });
    expect(wrong.status).toBe(400);
  });
});

test('a command whose syntax names a file says which, so that the server never opens it', () => {
  const program = createProgram({ out: () => undefined, err: () => undefined }, () => () => Promise.resolve());
  const named = Object.entries(NEEDS)
    .filter(([, needs]) => needs !== 'anyone')
    .filter(([path]) => {
      const command = commandAt(program, path);
      const flags = command?.options.map((option) => option.flags) ?? [];
      const names = command?.registeredArguments.map((argument) => argument.name()) ?? [];
      return names.includes('file') || flags.some((text) => text.includes('<file>'));
    });
  expect(named.map(([path]) => path).toSorted()).toEqual(Object.keys(NAMES_FILE).toSorted());
});

describe('what callers may take', () => {
  test('is bounded: a slow body, connections too many, and a file that is too long are cut', async () => {
    const tight = await start(
      { limits: { connections: 2, bodyMs: 200, headersMs: 300, checkMs: 50 } },
      { ONCEPER_SERVER_UPLOAD_LIMIT: '1kB' },
    );
    const all = await token('all', 'viewer', 'operator');
    const { port } = new URL(tight.url);
    const slow = await new Promise<number>((resolve, reject) => {
      const sent = overHttp(
        { port, method: 'POST', path: '/api/v1/approvals/list', headers: { authorization: `Bearer ${all}` } },
        (response) => resolve(response.resume().statusCode ?? 0),
      );
      sent.once('error', reject);
      sent.write('{');
    });
    expect(slow).toBe(408);
    const type = { 'content-type': 'application/octet-stream' };
    const file = await tight.ask('/api/v1/import/x.csv?source=generic', {
      token: all,
      body: Buffer.alloc(2_000),
      headers: type,
    });
    expect([file.status, codeOf(file)]).toEqual([413, 'file_too_large']);
    const silent = Array.from({ length: 4 }, () => connect(Number(port), '127.0.0.1'));
    await Promise.all(
      silent.map(
        (socket) =>
          new Promise((closed) =>
            socket
              .once('error', () => undefined)
              .once('close', closed)
              .resume(),
          ),
      ),
    );
    expect(spools()).toEqual([]);
    await tight.stop();
  });

  test('one command more than is taken is asked to come again', async () => {
    const full = await start({ limits: { commands: 0 } });
    const answered = await full.ask('/api/v1/doctor', { token: await token('all', 'viewer') });
    expect([answered.status, codeOf(answered), answered.headers['retry-after']]).toEqual([503, 'server_busy', '1']);
    await full.stop();
  });

  test('a file that is broken off leaves nothing behind', async () => {
    const all = await token('all', 'operator');
    const { port } = new URL(served.url);
    const sent = overHttp({
      port,
      method: 'POST',
      path: '/api/v1/import/x.csv?source=generic',
      headers: { authorization: `Bearer ${all}`, 'content-type': 'application/octet-stream', 'content-length': '1000' },
    });
    sent.on('error', () => undefined);
    sent.write('id,merchant');
    await waitFor(() => Promise.resolve(spools().length > 0), { what: 'the file' });
    sent.destroy();
    await waitFor(() => Promise.resolve(spools().length === 0), { what: 'its removal' });
  });
});

/** Folders of files that were sent to a server. */
function spools(): string[] {
  return readdirSync(tmpdir()).filter((name) => name.startsWith('onceper-file-'));
}
