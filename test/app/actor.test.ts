import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import path from 'node:path';
import type { Command } from 'commander';
import { SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { actorOf } from '../../src/app/actor.ts';
import { createProgram } from '../../src/app/cli.ts';
import type { IdentityConfig } from '../../src/app/people-config.ts';
import { NEEDS, pathOf } from '../../src/app/permissions.ts';
import { as, documentOf, type ErrorDocument, emptyHome, NOBODY, typed } from './command-line.ts';

const BARE: IdentityConfig = {
  isEmbedded: false,
  osUser: 'Alice',
  actor: null,
  roles: ['viewer', 'operator', 'approver'],
  token: null,
  tokenKey: null,
  audience: 'onceper',
  issuer: null,
};

const ELSEWHERE = { DATABASE_URL: `postgres://u@${NOBODY}/x`, TEMPORAL_ADDRESS: NOBODY };
const NOBODYS = { ...ELSEWHERE, ONCEPER_TOKEN: '', ONCEPER_TOKEN_KEY: '' };

let tokenKey = '';
beforeAll(async () => {
  tokenKey = (await as('x'))['ONCEPER_TOKEN_KEY'] ?? '';
});

describe('without a token', () => {
  test('the user of a machine with embedded servers acts, in the configured roles', async () => {
    const actor = await actorOf({ ...BARE, isEmbedded: true, roles: ['operator'] });
    expect(actor).toEqual({ id: 'os:alice', name: null, roles: ['operator'], token: null });
  });

  test('ONCEPER_ACTOR names another person there', async () => {
    const actor = await actorOf({ ...BARE, isEmbedded: true, actor: 'os:Bob' });
    expect(actor).toEqual({ id: 'os:bob', name: null, roles: BARE.roles, token: null });
  });

  test('with any other database the user may read, under no name but their own', async () => {
    expect(await actorOf(BARE)).toEqual({ id: 'os:alice', name: null, roles: ['viewer'], token: null });
    await expect(actorOf({ ...BARE, actor: 'os:bob' })).rejects.toMatchObject({
      code: 'bad_configuration',
      at: 'ONCEPER_ACTOR',
    });
  });
});

describe('a token', () => {
  const given = async (token: string, changes: Partial<IdentityConfig> = {}) =>
    actorOf({ ...BARE, tokenKey, token, ...changes });
  const signed = async (subject: string, ...roles: readonly string[]) =>
    (await as(subject, ...roles))['ONCEPER_TOKEN'] ?? '';

  test('names its subject, in its one spelling, whatever the operating system says', async () => {
    const token = await signed('Bob', 'approver', 'payroll-admin');
    const actor = await given(token, { isEmbedded: true, actor: 'os:eve' });
    expect(actor).toEqual({ id: 'user:bob', name: null, roles: ['approver'], token });
    expect((await given(await signed('BOB', 'operator'))).id).toBe(actor.id);
  });

  test('is checked with the public key alone', async () => {
    const file = path.join(emptyHome, 'public.pem');
    writeFileSync(file, createPublicKey(readFileSync(tokenKey)).export({ format: 'pem', type: 'spki' }));
    expect((await given(await signed('bob', 'viewer'), { tokenKey: file })).id).toBe('user:bob');
  });

  test.each<[string, Readonly<Record<string, unknown>>, string]>([
    ['that has expired', { exp: 1_700_000_000 }, 'token_expired'],
    ['without an end', { exp: undefined }, 'token_refused'],
    ['without a subject', { sub: undefined }, 'token_refused'],
    ['of another audience', { aud: 'payroll' }, 'token_refused'],
    ['of another issuer', { iss: 'elsewhere' }, 'token_refused'],
    ['that holds', {}, 'none'],
  ])('%s is judged by its claims', async (_, changes, code) => {
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const file = path.join(emptyHome, 'rsa.pem');
    writeFileSync(file, publicKey.export({ format: 'pem', type: 'spki' }));
    const claims = { sub: 'bob', iss: 'idp', aud: 'onceper', exp: 4_000_000_000, ...changes };
    const token = await new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).sign(privateKey);
    const actor = given(token, { tokenKey: file, isEmbedded: true, issuer: 'idp' });
    if (code === 'none') expect(await actor).toMatchObject({ id: 'user:bob' });
    else await expect(actor).rejects.toMatchObject({ code });
  });

  test('signed by another key, or by none, is refused', async () => {
    const other = generateKeyPairSync('ed25519').privateKey;
    const claims = new SignJWT({ roles: ['approver'] })
      .setSubject('eve')
      .setAudience('onceper')
      .setExpirationTime('1h');
    const forged = await claims.setProtectedHeader({ alg: 'EdDSA' }).sign(other);
    await expect(given(forged)).rejects.toMatchObject({ code: 'token_refused' });
    const [, body = ''] = forged.split('.');
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`;
    await expect(given(unsigned)).rejects.toMatchObject({ code: 'token_refused' });
    const secret = createPublicKey(readFileSync(tokenKey)).export({ format: 'pem', type: 'spki' });
    const confused = await new SignJWT({ roles: ['approver'] })
      .setSubject('eve')
      .setAudience('onceper')
      .setExpirationTime('1h')
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(secret));
    await expect(given(confused)).rejects.toMatchObject({ code: 'token_refused' });
  });

  test('needs a key that can be read', async () => {
    const token = await signed('bob', 'viewer');
    await expect(given(token, { tokenKey: null })).rejects.toMatchObject({ at: 'ONCEPER_TOKEN_KEY' });
    await expect(given(token, { tokenKey: '/nowhere.pem' })).rejects.toMatchObject({ code: 'bad_configuration' });
  });
});

describe('on the command line', () => {
  test('a token is issued and holds', async () => {
    const issued = await typed(['token', 'issue', '--subject', 'Carol', '--roles', 'operator,approver', '--name', 'C']);
    expect(issued.code).toBe(0);
    const shown = await typed(['token', 'show', '--json'], { ONCEPER_TOKEN: issued.out.trim() });
    expect(documentOf(shown)).toEqual({ id: 'user:carol', name: 'C', roles: ['operator', 'approver'] });
  });

  test.each([
    [['token', 'issue', '--subject', 'a', '--roles', 'king'], 'usage'],
    [['token', 'issue', '--subject', 'a', '--roles', 'viewer', '--for', '31d'], 'usage'],
    [['token', 'issue', '--subject', ' ', '--roles', 'viewer'], 'malformed_actor'],
  ])('%s is refused', async (line, code) => {
    const printed = await typed([...line, '--json']);
    expect(documentOf<ErrorDocument>(printed).error.code).toBe(code);
    expect(printed.code).toBe(2);
  });

  test('whoever lacks the role of a command is refused with what to do, before anything is connected', async () => {
    const line = ['outbox', 'retry', 'n', '--reason', 'x', '--json'];
    for (const given of [{ ...ELSEWHERE, ...(await as('bob', 'viewer', 'approver')) }, NOBODYS]) {
      const printed = await typed(line, given);
      const { error } = documentOf<ErrorDocument>(printed);
      expect(printed.code).toBe(3);
      expect(error).toMatchObject({ code: 'forbidden', message: expect.stringContaining('needs the role operator') });
      expect(error.remedy).toContain('token with the role operator');
    }
  });

  test('whoever has any role may read; an unsigned user may read too', async () => {
    for (const given of [{ ...ELSEWHERE, ...(await as('bob', 'approver')) }, NOBODYS]) {
      const printed = await typed(['show', 'tiny:2026-01', '--json'], given);
      expect(documentOf<ErrorDocument>(printed).error.code).toBe('database_unreachable');
    }
    const nothing = await typed(['show', 'tiny:2026-01', '--json'], { ...ELSEWHERE, ...(await as('bob')) });
    expect(documentOf<ErrorDocument>(nothing).error.code).toBe('forbidden');
  });

  test('ONCEPER_ACTOR is heard with the embedded servers only', async () => {
    const shown = await typed(['token', 'show', '--json'], { ONCEPER_TOKEN: '', ONCEPER_ACTOR: 'os:Dan' });
    expect(documentOf(shown)).toMatchObject({ id: 'os:dan', roles: ['viewer', 'operator', 'approver'] });
    const refused = await typed(['token', 'show', '--json'], { ...NOBODYS, ONCEPER_ACTOR: 'os:dan' });
    expect(documentOf<ErrorDocument>(refused).error).toMatchObject({ code: 'bad_configuration', at: 'ONCEPER_ACTOR' });
    const own = await typed(['token', 'show', '--json'], NOBODYS);
    expect(documentOf(own)).toEqual({ id: `os:${userInfo().username.toLowerCase()}`, name: null, roles: ['viewer'] });
  });

  test('every command says which role it needs, and no role is stated for a command that is not there', () => {
    const leaves = (command: Command): Command[] =>
      command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
    const io = { out: () => undefined, err: () => undefined };
    const paths = leaves(createProgram(io, () => () => Promise.resolve())).map(pathOf);
    expect(Object.keys(NEEDS).sort()).toEqual(paths.sort());
  });
});
