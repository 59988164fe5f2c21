import { userInfo } from 'node:os';
import { z } from 'zod';
import { parseRoles, ROLES, type Role } from '../kernel/actor.ts';
import { withoutPassword } from './database-url.ts';

/** What says who acts (actor.ts). */
export interface IdentityConfig {
  /** True with the servers of `up`, or before any database is known: one machine, whose user is asked. */
  readonly isEmbedded: boolean;
  readonly osUser: string;
  /** Another id than the user's, and the roles; for the embedded servers only. */
  readonly actor: string | null;
  readonly roles: readonly Role[];
  /** A signed token; it is logged nowhere. */
  readonly token: string | null;
  /** The file of the key that tokens are checked with. */
  readonly tokenKey: string | null;
  readonly audience: string;
  readonly issuer: string | null;
}

/** The process that acts for people (docs/server.md): where it is, what it is itself, and how it is gone round. */
export interface ServerConfig {
  /** Where the command line sends what it is told; null where it acts by itself. */
  readonly url: string | null;
  /** Whether http may lead to another machine. */
  readonly plainHttp: 'loopback' | 'anywhere';
  readonly caFile: string | null;
  readonly listen: { readonly host: string; readonly port: number };
  readonly certFile: string | null;
  readonly keyFile: string | null;
  readonly uploadLimitBytes: number;
  /** Why somebody acts past the server. */
  readonly breakGlass: string | null;
}

const BYTES: Readonly<Record<string, number>> = { '': 1, kB: 1_000, MB: 1_000_000, GB: 1_000_000_000 };

/** `host:port` of an address to listen on; an IPv6 address stands in brackets. Null where it is none. */
export function parseListen(text: string): ServerConfig['listen'] | null {
  const [, bracketed, plain, digits = ''] = /^(?:\[([^\]]+)\]|([^:\s[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number.parseInt(digits, 10);
  return host !== undefined && port <= 65_535 ? { host, port } : null;
}

/** The variables of people and of the process that acts for them. */
export const peopleVariables = {
  ONCEPER_ACTOR: z.string().min(1).optional(),
  ONCEPER_ROLES: z
    .string()
    .refine((text) => parseRoles(text) !== null, `roles with commas between them, of ${ROLES.join(', ')}`)
    .default('viewer,operator,approver'),
  ONCEPER_TOKEN: z.string().optional(),
  ONCEPER_TOKEN_KEY: z.string().optional(),
  ONCEPER_TOKEN_AUDIENCE: z.string().min(1).default('onceper'),
  ONCEPER_TOKEN_ISSUER: z.string().optional(),
  ONCEPER_SERVER: z.url({ protocol: /^https?$/ }).optional(),
  ONCEPER_SERVER_PLAIN_HTTP: z.enum(['loopback', 'anywhere']).default('loopback'),
  ONCEPER_SERVER_CA_FILE: z.string().optional(),
  ONCEPER_SERVER_LISTEN: z
    .string()
    .refine((text) => parseListen(text) !== null, 'an address and a port such as 127.0.0.1:8380')
    .default('127.0.0.1:8380'),
  ONCEPER_SERVER_CERT_FILE: z.string().optional(),
  ONCEPER_SERVER_KEY_FILE: z.string().optional(),
  ONCEPER_SERVER_UPLOAD_LIMIT: z
    .string()
    .regex(/^[1-9]\d{0,8}(kB|MB|GB)?$/, 'a size such as 500MB or 2GB')
    .default('2GB'),
  ONCEPER_BREAK_GLASS: z.string().trim().min(1).max(1_000).optional(),
};

const shape = z.object(peopleVariables);
type Own = z.infer<typeof shape>;

/** Who acts, of the variables and the databases that are known. */
export function identityOf(own: Own, givenDatabase: string | null, embedded: string | null): IdentityConfig {
  return {
    isEmbedded: givenDatabase === null || (embedded !== null && isSameDatabase(givenDatabase, embedded)),
    osUser: userInfo().username,
    actor: own.ONCEPER_ACTOR ?? null,
    roles: parseRoles(own.ONCEPER_ROLES) ?? [],
    token: own.ONCEPER_TOKEN ?? null,
    tokenKey: own.ONCEPER_TOKEN_KEY ?? null,
    audience: own.ONCEPER_TOKEN_AUDIENCE,
    issuer: own.ONCEPER_TOKEN_ISSUER ?? null,
  };
}

/** The server's part of the variables. */
export function serverOf(own: Own): ServerConfig {
  const [, digits = '', unit = ''] = /^(\d+)(\D*)$/.exec(own.ONCEPER_SERVER_UPLOAD_LIMIT) ?? [];
  return {
    url: own.ONCEPER_SERVER ?? null,
    plainHttp: own.ONCEPER_SERVER_PLAIN_HTTP,
    caFile: own.ONCEPER_SERVER_CA_FILE ?? null,
    listen: parseListen(own.ONCEPER_SERVER_LISTEN) ?? { host: '127.0.0.1', port: 8380 },
    certFile: own.ONCEPER_SERVER_CERT_FILE ?? null,
    keyFile: own.ONCEPER_SERVER_KEY_FILE ?? null,
    uploadLimitBytes: Number.parseInt(digits, 10) * (BYTES[unit] ?? 1),
    breakGlass: own.ONCEPER_BREAK_GLASS ?? null,
  };
}

/** A person who copies the address that is printed has left the password out. */
function isSameDatabase(one: string, other: string): boolean {
  return withoutPassword(one) === withoutPassword(other);
}
