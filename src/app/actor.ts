import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { errors, jwtVerify } from 'jose';
import { type Actor, actorId, normaliseActorId, parseRoles, type Role } from '../kernel/actor.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Instant } from '../kernel/sql.ts';
import type { IdentityConfig } from './people-config.ts';

/**
 * Who types a command. A token that is given decides, and one that does not hold is an error, never another person. Without one
 * the operating system's user acts: with the embedded servers in the configured roles, and under another id where ONCEPER_ACTOR
 * names one; with any other database as a viewer under no id but their own. Throws OnceperError `token_refused`,
 * `token_expired`, `bad_configuration`.
 */
export async function actorOf(identity: IdentityConfig): Promise<Actor> {
  if (identity.token !== null) return actorOfToken(identity.token, identity);
  const { isEmbedded, actor, osUser, roles } = identity;
  if (isEmbedded)
    return { id: actor === null ? actorId('os', osUser) : normaliseActorId(actor), name: null, roles, token: null };
  if (actor !== null) {
    throw new OnceperError({
      code: 'bad_configuration',
      message: 'ONCEPER_ACTOR names people with the embedded servers only',
      remedy: 'unset it and set ONCEPER_TOKEN, which says who you are (npx onceper token issue makes one)',
      at: 'ONCEPER_ACTOR',
    });
  }
  return { id: actorId('os', osUser), name: null, roles: ['viewer'], token: null };
}

/** The signatures that a key of each kind may have made; a token never chooses its own. */
const ALGORITHMS: Readonly<Record<string, readonly string[]>> = {
  ed25519: ['EdDSA', 'Ed25519'],
  ec: ['ES256', 'ES384', 'ES512'],
  rsa: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
};

/** The algorithms that a key may sign with; throws OnceperError `bad_configuration` for a key of another kind. */
export function algorithmsOf(key: KeyObject, at: string): readonly string[] {
  const algorithms = ALGORITHMS[key.asymmetricKeyType ?? ''];
  if (algorithms !== undefined) return algorithms;
  throw new OnceperError({
    code: 'bad_configuration',
    message: `${at} holds a key of kind ${key.asymmetricKeyType ?? key.type}`,
    remedy: `use one of ${Object.keys(ALGORITHMS).join(', ')}: openssl genpkey -algorithm ed25519`,
    at,
  });
}

/** Reads a key from a PEM file; throws OnceperError `bad_configuration` naming the variable. */
export function readKey<Key>(file: string | null, variable: string, parse: (pem: string) => Key): Key {
  try {
    if (file !== null) return parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new OnceperError({
      code: 'bad_configuration',
      message: `the key file of ${variable} can't be used: ${error instanceof Error ? error.message : String(error)}`,
      remedy: 'name a PEM file: openssl genpkey -algorithm ed25519 -out onceper.pem',
      at: variable,
      cause: error,
    });
  }
  throw new OnceperError({
    code: 'bad_configuration',
    message: `${variable} is not set`,
    remedy: `name a PEM file in ${variable}: openssl genpkey -algorithm ed25519 -out onceper.pem`,
    at: variable,
  });
}

/** A private Ed25519 key of a PEM text: it signs without a choice of digests. Throws where it is another. */
export function signingKey(pem: string): KeyObject {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new Error(`it is of kind ${key.asymmetricKeyType ?? 'unknown'}, not ed25519`);
}

const TOKEN_KEY = 'ONCEPER_TOKEN_KEY';

/**
 * The actor that a signed token names: `user:` and its subject, with the roles of its claim `roles`. The token is the one that is
 * given, and the key, audience and issuer are those of `identity`. Throws OnceperError `token_refused`, `token_expired`,
 * `bad_configuration`.
 */
export async function actorOfToken(token: string, identity: IdentityConfig, at = new Date()): Promise<Actor> {
  const key = readKey(identity.tokenKey, TOKEN_KEY, createPublicKey);
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [...algorithmsOf(key, TOKEN_KEY)],
      audience: identity.audience,
      ...(identity.issuer === null ? {} : { issuer: identity.issuer }),
      requiredClaims: ['sub', 'exp'],
      clockTolerance: CLOCKS_DIFFER_S,
      currentDate: at,
    });
    const name = typeof payload['name'] === 'string' ? payload['name'] : null;
    return { id: actorId('user', payload.sub ?? ''), name, roles: rolesOf(payload['roles']), token };
  } catch (error) {
    if (error instanceof OnceperError) throw error;
    throw tokenFault(error);
  }
}

/** Why a stored token does not show that somebody was who they said at an instant, or null where it does. */
export async function whyUnproven(
  token: string,
  actor: string,
  identity: IdentityConfig,
  at: Instant,
): Promise<string | null> {
  try {
    const { id } = await actorOfToken(token, identity, new Date(at));
    return id === actor ? null : `it is one of ${id}`;
  } catch (error) {
    if (!(error instanceof OnceperError) || error.code === 'bad_configuration') throw error;
    if (error.code === 'token_expired') return 'it had expired by then';
    return error.cause instanceof Error ? error.cause.message : error.message;
  }
}

/** An identity provider's machine and this one may be so far apart. */
const CLOCKS_DIFFER_S = 5;

/** Words that are no roles of ours are another product's. */
function rolesOf(claim: unknown): readonly Role[] {
  const words = Array.isArray(claim) ? claim : typeof claim === 'string' ? claim.split(/[\s,]+/) : [];
  return words.flatMap((word) => (typeof word === 'string' ? (parseRoles(word) ?? []) : []));
}

/** The server was asked without a token. */
export function tokenNeeded(): OnceperError {
  return new OnceperError({
    code: 'token_needed',
    message: 'the server acts for nobody whom it does not know',
    remedy: 'set ONCEPER_TOKEN, or send Authorization: Bearer and a token',
    at: 'ONCEPER_TOKEN',
  });
}

function tokenFault(error: unknown): OnceperError {
  const isExpired = error instanceof errors.JWTExpired;
  const why = error instanceof Error ? error.message : String(error);
  return new OnceperError({
    code: isExpired ? 'token_expired' : 'token_refused',
    message: isExpired ? 'the token in ONCEPER_TOKEN has expired' : `the token in ONCEPER_TOKEN does not hold: ${why}`,
    remedy:
      'get a new one where you got it; npx onceper token issue makes one with the private key of ONCEPER_TOKEN_KEY',
    at: 'ONCEPER_TOKEN',
    cause: error,
  });
}
