import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import pg from 'pg';
import { OnceperError } from '../kernel/error.ts';

/** The parameters of an address that are about TLS: ours to read, since the driver means other things by them than libpq does. */
const TLS_PARAMETERS = ['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat'];

const MODES = ['disable', 'require', 'verify-ca', 'verify-full'] as const;
type Mode = (typeof MODES)[number];

/** What the driver and knex connect with. */
export interface Connection {
  readonly connectionString: string;
  readonly ssl: Exclude<pg.ClientConfig['ssl'], true | undefined>;
}

/**
 * A connection to the database of an address, `postgres://user:password@host:5432/database?sslmode=…`. Beyond this machine the
 * server must prove with a certificate that it is the host of the address (`verify-full`), unless `sslmode` asks for less: a
 * false server would be given the password. Throws OnceperError `bad_configuration` for an address that can't be meant; `name` is
 * what the person calls it. The password is never repeated.
 */
export function connectionOf(address: string, name = 'the database’s address'): Connection {
  try {
    const url = parsed(address);
    const parameters = new Map(TLS_PARAMETERS.map((parameter) => [parameter, url.searchParams.get(parameter)]));
    for (const parameter of TLS_PARAMETERS) url.searchParams.delete(parameter);
    if (url.searchParams.has('options')) {
      throw new Mistake(
        'options would replace the settings of each session',
        'set them for the role: alter role … set …',
      );
    }
    const connectionString = url.href;
    const { host } = new pg.Client({ connectionString });
    return { connectionString, ssl: tlsOf(parameters, host) };
  } catch (error) {
    if (!(error instanceof Mistake)) throw error;
    const { message, remedy } = error;
    throw new OnceperError({ code: 'bad_configuration', message: `${name}: ${message}`, remedy, at: name });
  }
}

/** The address as it is understood; throws what `connectionOf` throws. */
export function checkedAddress(address: string, name: string): string {
  connectionOf(address, name);
  return parsed(address).href;
}

class Mistake extends Error {
  readonly remedy: string;

  constructor(message: string, remedy = 'write it as postgres://user:password@host:5432/database') {
    super(message);
    this.remedy = remedy;
  }
}

function parsed(address: string): URL {
  if (!/^postgres(ql)?:\/\/./.test(address)) throw new Mistake('it is no PostgreSQL address');
  // A socket's folder is given as ?host=, beside no host; the URL standard knows no user without one.
  const url = readUrl(address) ?? readUrl(address.replace(/@\/(?=.*[?&]host=)/, '@localhost/'));
  // What is behind an unescaped # of a password would be left out without a word.
  if (url === null || address.includes('#')) throw unreadable(address);
  for (const part of [url.username, url.password, url.pathname]) {
    if (!isDecodable(part)) throw new Mistake('it has a % that begins no escaped character', 'write % as %25');
  }
  return url;
}

function readUrl(address: string): URL | null {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}

/** Says which part is wrong where that can be told, and never shows the password. */
function unreadable(address: string): Mistake {
  const authority = address.replace(/^postgres(ql)?:\/\//, '');
  const credentials = authority.slice(0, Math.max(0, authority.lastIndexOf('@')));
  const unescaped = /[#/?[\]]/.exec(credentials)?.[0] ?? (authority.includes('#') ? '#' : undefined);
  if (unescaped !== undefined) {
    return new Mistake(
      `it has an unescaped ${unescaped}, as of a password`,
      `write ${unescaped} as ${encodeURIComponent(unescaped)}, as every other special character (# %23, / %2F, ? %3F, @ %40)`,
    );
  }
  const port = /:(\d+)(?:[/?]|$)/.exec(authority.slice(credentials.length))?.[1];
  if (port !== undefined && Number(port) > 65_535) return new Mistake(`${port} is no port`, 'a port is at most 65535');
  return new Mistake('it is no PostgreSQL address');
}

function isDecodable(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

type Parameters = ReadonlyMap<string, string | null>;

function tlsOf(parameters: Parameters, host: string): Connection['ssl'] {
  for (const name of ['ssl', 'sslnegotiation', 'uselibpqcompat']) {
    if (parameters.get(name) !== null) throw new Mistake(`${name} is not understood`, ONE_OF);
  }
  const mode = modeOf(parameters.get('sslmode') ?? null, host);
  if (mode === 'disable') return false;
  const authority = parameters.get('sslrootcert') === 'system' ? null : fileOf(parameters, 'sslrootcert');
  const [cert, key] = [fileOf(parameters, 'sslcert'), fileOf(parameters, 'sslkey')];
  const own = {
    ...(authority === null ? {} : { ca: authority }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
  // As libpq does: whoever names an authority wants it asked.
  if (mode === 'require' && authority === null) return { ...own, rejectUnauthorized: false };
  // Said by us, since of a numeric address the driver would compare another name.
  const asked = mode === 'verify-full' ? host : null;
  return {
    ...own,
    checkServerIdentity: (_, shown) => (asked === null ? undefined : checkServerIdentity(asked, shown)),
  };
}

const ONE_OF = `use sslmode, one of ${MODES.join(', ')}`;

function modeOf(given: string | null, host: string): Mode {
  if (given === null) return isThisMachine(host) ? 'disable' : 'verify-full';
  const known = MODES.find((mode) => mode === given);
  if (known !== undefined) return known;
  const isLax = given === 'prefer' || given === 'allow';
  const why = isLax ? 'would give the password to a server that says it knows no TLS' : 'is unknown';
  throw new Mistake(`sslmode=${given} ${why}`, ONE_OF);
}

function isThisMachine(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  if (isIP(bare) === 4) return bare.startsWith('127.');
  return bare === 'localhost' || bare === '::1' || bare.startsWith('/');
}

function fileOf(parameters: Parameters, name: string): string | null {
  const file = parameters.get(name) ?? null;
  if (file === null) return null;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Mistake(`${name} can't be read: ${why}`, 'name a file of PEM text that this user may read');
  }
}
