import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whyUnproven } from '../../../src/app/actor.ts';
import { findingText } from '../../../src/ops/audit/finding.ts';
import { verifyDecisions } from '../../../src/ops/audit/proofs.ts';
import { type Database, openDatabase } from '../../../src/store/database.ts';
import { insert } from '../../store/by-hand-rows.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { forced } from '../../support/forced.ts';

const ours = generateKeyPairSync('ed25519');
const theirs = generateKeyPairSync('ed25519');
const folder = mkdtempSync(join(tmpdir(), 'onceper-proofs-'));
const identity = {
  isEmbedded: false,
  osUser: 'root',
  actor: null,
  roles: [],
  token: null,
  tokenKey: join(folder, 'key.pub.pem'),
  audience: 'onceper',
  issuer: null,
};
const MINUTE = 60_000;
const now = Date.now();
let database: TestDatabase;
let db: Database;

beforeAll(async () => {
  writeFileSync(identity.tokenKey, ours.publicKey.export({ format: 'pem', type: 'spki' }));
  database = await createTestDatabase();
  db = openDatabase({ url: database.url, name: 'test', max: 2 });
});
afterAll(async () => {
  await db.close();
  await database.drop();
  rmSync(folder, { recursive: true });
});

function tokenOf(sub: string, expiresAt: number, key: KeyObject = ours.privateKey): Promise<string> {
  return new SignJWT({ roles: ['approver'] })
    .setProtectedHeader({ alg: 'EdDSA' })
    .setSubject(sub)
    .setAudience('onceper')
    .setExpirationTime(new Date(expiresAt))
    .sign(key);
}

/** Stores a decided request, with whatever stands beside the decision, as nobody at work can. */
async function decided(
  id: string,
  proof: { token: string | null; at?: number; expiresAt?: number; as?: string } | null,
) {
  const request = insert('onceper.approval', {
    id,
    subject: id,
    state: 'approved',
    decided_by: 'user:bob',
    executed_by: null,
    executed_at: null,
    expires_at: '2099-01-01T00:00:00Z',
  });
  await forced(db, request.text, request.values);
  if (proof === null) return;
  const { token, at = now - 10 * MINUTE, expiresAt = now - 5 * MINUTE, as = null } = proof;
  await forced(
    db,
    `insert into onceper.decision_proof (approval, revision, verb, actor, token, expires_at, login_as, at)
     values ($1, 1, 'approve', 'user:bob', $2, $3, $4, $5)`,
    [id, token, token === null ? null : new Date(expiresAt), as, new Date(at)],
  );
}

const BY_TOKEN = (id: string) => `request ${id}: the token by which user:bob is said to approve it can't be trusted:`;

test('each decision is proven by the signed token beside it, or named', async () => {
  const then = now - 5 * MINUTE;
  await decided('sound', { token: await tokenOf('Bob', then) });
  await decided('in use', { token: await tokenOf('bob', now + MINUTE), expiresAt: now + MINUTE });
  await decided('by-login', { token: null, as: 'break-glass' });
  const check = (token: string, actor: string, at: string) => whyUnproven(token, actor, identity, at);
  expect(await verifyDecisions(db, check)).toEqual({
    decisions: { proven: 1, unchecked: 1, byLogin: 1 },
    findings: [],
  });
  expect((await verifyDecisions(db, null)).decisions).toEqual({ proven: 0, unchecked: 2, byLogin: 1 });

  await decided('another-key', { token: await tokenOf('bob', then, theirs.privateKey) });
  await decided('another-person', { token: await tokenOf('alice', then) });
  await decided('too-late', { token: await tokenOf('bob', then), at: now - 2 * MINUTE });
  await decided('unsigned', { token: 'e30.e30.' });
  await decided('nothing', null);
  const { decisions, findings } = await verifyDecisions(db, check);
  expect(decisions.proven).toBe(1);
  expect(findings.map(findingText).toSorted()).toEqual([
    `${BY_TOKEN('another-key')} signature verification failed`,
    `${BY_TOKEN('another-person')} it is one of user:alice`,
    'request nothing: user:bob is said to approve it, and no token of theirs stands beside it',
    `${BY_TOKEN('too-late')} it had expired by then`,
    `${BY_TOKEN('unsigned')} JWS "alg" (Algorithm) Header Parameter missing or invalid`,
  ]);
});
