import { codeOf, OnceperError } from '../kernel/error.ts';

/** What can be wrong with a database, in the order in which it is looked for. */
interface Known {
  /** SQLSTATEs (PostgreSQL's appendix A), or codes of Node's sockets and TLS. */
  readonly pattern: RegExp;
  readonly code: string;
  /** What happened; without it a transaction was ended. */
  readonly sentence?: string;
  /** Whether the server's own words are added: where they hold names, and never a row's values. */
  readonly words?: true;
  readonly remedy: string;
}

const START_IT = 'start it (npx onceper up) or point DATABASE_URL at the server that runs';
const NOTHING_LOST = 'nothing is lost: the transaction rolled back and the next attempt reads the ledger again';
const SEE_THE_LOG = 'see the log of the database server at this moment';
const NAME_AUTHORITY = 'give its authority as sslrootcert in DATABASE_URL (docs/configuration.md)';
const UNREACHABLE = "the database can't be reached";

const KNOWN: readonly Known[] = [
  {
    pattern: /^ECONNREFUSED$/,
    code: 'database_unreachable',
    sentence: `${UNREACHABLE}: nobody listens there`,
    remedy: START_IT,
  },
  {
    pattern: /^(ENOTFOUND|EAI_AGAIN)$/,
    code: 'database_unreachable',
    sentence: `${UNREACHABLE}: its host is not known`,
    remedy: 'correct the host in DATABASE_URL',
  },
  {
    pattern: /^(EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)$/,
    code: 'database_unreachable',
    sentence: `${UNREACHABLE}: it does not answer`,
    remedy: START_IT,
  },
  {
    pattern: /^57P03$/,
    code: 'database_unreachable',
    sentence: `${UNREACHABLE}: it starts or stops just now`,
    remedy: 'try again in a moment',
  },
  {
    pattern: /^28P01$/,
    code: 'database_password',
    sentence: 'the database refuses the password',
    words: true,
    remedy: 'correct user and password in DATABASE_URL',
  },
  {
    pattern: /^28000$/,
    code: 'database_login',
    sentence: 'the database does not let this user in',
    words: true,
    remedy:
      'name a role that may log in from here (docs/roles.md); where it asks for encryption, set sslmode in DATABASE_URL',
  },
  {
    pattern: /^3D000$/,
    code: 'database_missing',
    sentence: 'the server has no such database',
    words: true,
    remedy: 'correct the name in DATABASE_URL, or create it and then npx onceper migrate',
  },
  {
    pattern: /^53300$/,
    code: 'too_many_connections',
    sentence: 'the database takes no more connections',
    words: true,
    remedy: 'raise max_connections of the server, or run fewer workers and relays',
  },
  {
    pattern: /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN)$/,
    code: 'database_certificate',
    sentence: 'the certificate of the database’s server is signed by itself',
    remedy: NAME_AUTHORITY,
  },
  {
    pattern: /^UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT|GET_ISSUER_CERT_LOCALLY)$/,
    code: 'database_certificate',
    sentence: 'the certificate of the database’s server is signed by an authority that nobody here trusts',
    remedy: NAME_AUTHORITY,
  },
  {
    pattern: /^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)$/,
    code: 'database_certificate',
    sentence: 'the certificate of the database’s server is out of date',
    remedy: 'renew it there, or set the clock of this machine',
  },
  {
    pattern: /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    code: 'database_certificate',
    sentence: 'the certificate of the database’s server is of another name',
    words: true,
    remedy: 'write the name of the certificate as the host in DATABASE_URL; a false server looks like this',
  },
  {
    pattern: /^(ERR_SSL_\w+|EPROTO)$/,
    code: 'database_certificate',
    sentence: 'the encrypted connection to the database was refused',
    remedy: 'where the server asks for a certificate, give sslcert and sslkey in DATABASE_URL',
  },
  { pattern: /^(08.{3}|57P01|57P02|ECONNRESET|EPIPE)$/, code: 'connection_lost', remedy: NOTHING_LOST },
  { pattern: /^55P03$/, code: 'lock_timeout', remedy: SEE_THE_LOG },
  { pattern: /^57014$/, code: 'statement_timeout', remedy: SEE_THE_LOG },
  { pattern: /^(25P03|25P04|57P05)$/, code: 'transaction_timeout', remedy: SEE_THE_LOG },
  { pattern: /^40P01$/, code: 'deadlock', remedy: SEE_THE_LOG },
  { pattern: /^40(000|001|002)$/, code: 'serialization', remedy: SEE_THE_LOG },
  {
    pattern: /^23.{3}$/,
    code: 'constraint',
    sentence: 'the database refused the write',
    words: true,
    remedy: SEE_THE_LOG,
  },
  {
    pattern: /^53100$/,
    code: 'database_full',
    sentence: 'the disk of the database is full',
    remedy: 'free space on the disk of the database server; what was committed is kept',
  },
  {
    pattern: /^53.{3}$/,
    code: 'database_full',
    sentence: 'the database has run out of memory or connections',
    remedy: 'free memory or connections on the database server',
  },
  {
    pattern: /^25006$/,
    code: 'database_read_only',
    sentence: 'the database takes no writes: it is a replica, or set to read only',
    remedy: 'point DATABASE_URL at the primary',
  },
  {
    pattern: /^42501$/,
    code: 'permission_denied',
    sentence: 'the database refuses this login what the command needs',
    words: true,
    remedy: 'use a login of the group that may (docs/roles.md)',
  },
  {
    pattern: /^42.{3}$/,
    code: 'database',
    sentence: 'the database refused a statement',
    words: true,
    remedy: SEE_THE_LOG,
  },
];

const NOT_MIGRATED: Known = {
  pattern: /^(42P01|3F000)$/,
  code: 'not_migrated',
  sentence: 'the database lacks a table of this release',
  remedy: 'npx onceper migrate',
};
const NO_TLS: Known = {
  pattern: /^$/,
  code: 'database_no_tls',
  sentence: 'the database’s server knows no TLS, so that it could be anybody',
  remedy: 'turn ssl on there; where the way to it is safe, add sslmode=disable to DATABASE_URL',
};
const POOLER: Known = {
  pattern: /^$/,
  code: 'pooler_not_supported',
  sentence: 'between here and PostgreSQL is a pooler that does not take the settings of a session',
  words: true,
  remedy: 'point DATABASE_URL at PostgreSQL itself, not at a pooler such as pgbouncer',
};
const CUT: Known = { pattern: /^$/, code: 'connection_lost', remedy: NOTHING_LOST };
const REFUSED: Known = {
  pattern: /^/,
  code: 'database',
  sentence: 'the database refused a statement',
  remedy: SEE_THE_LOG,
};

/** Codes of a database that is away, full, locked or misaddressed. It passes or is mended without a word about the work. */
export const FAULTS_OF_THE_DATABASE: ReadonlySet<string> = new Set([
  ...KNOWN.map(({ code }) => code).filter((code) => !['constraint', 'permission_denied', 'database'].includes(code)),
  NO_TLS.code,
  POOLER.code,
  'commit_unknown',
]);

/** Codes of a database that can't be connected to, whatever is asked of it. */
export const FAULTS_OF_CONNECTING: ReadonlySet<string> = new Set([
  'database_unreachable',
  'database_password',
  'database_login',
  'database_missing',
  'too_many_connections',
  'database_certificate',
  'database_no_tls',
  'pooler_not_supported',
]);

/**
 * What went wrong in the database, as an OnceperError with a stable code; an OnceperError passes through. What the server said is
 * kept as `cause`; it is repeated only where it holds names, since it can hold a row's values.
 */
export function faultOf(error: unknown): OnceperError {
  if (error instanceof OnceperError) return error;
  const state = codeOf(error) ?? '';
  const known = knownAs(error, state);
  const constraint = constraintOf(error);
  return new OnceperError({
    code: known.code,
    message: constraint === null ? sentenceOf(known, state, error) : `constraint ${constraint} refused the write`,
    remedy: known.remedy,
    at: constraint,
    cause: error,
  });
}

/** The same in the server's own words, for whoever wrote the statement: of an item's work nobody else knows what is meant. */
export function inServersWords(thrown: unknown): unknown {
  const isOurs = thrown instanceof OnceperError && thrown.code === 'database' && codeOf(thrown.cause) !== null;
  if (!isOurs) return thrown;
  const { code, cause, at } = thrown;
  const message = `the database refused the work: ${wordsOf(cause)} (${codeOf(cause)})`;
  return new OnceperError({ code, message, remedy: 'correct the SQL of the work, or what it is given', at, cause });
}

function knownAs(error: unknown, state: string): Known {
  const words = wordsOf(error);
  if (NOT_MIGRATED.pattern.test(state) && /"(onceper|settlement)[".]/.test(words)) return NOT_MIGRATED;
  if (words.startsWith('unsupported startup parameter')) return POOLER;
  const known = state === '' ? undefined : KNOWN.find(({ pattern }) => pattern.test(state));
  if (known !== undefined) return known;
  if (words.startsWith('The server does not support SSL connections')) return NO_TLS;
  return CUT_WORDS.test(words) ? CUT : REFUSED;
}

const CUT_WORDS =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/;

function sentenceOf(known: Known, state: string, error: unknown): string {
  const of = state === '' ? '' : ` (${state})`;
  if (known === REFUSED && state === '') return `${known.sentence} (${String(error)})`;
  if (known.sentence === undefined)
    return `the database ended the transaction: ${known.code.replaceAll('_', ' ')}${of}`;
  return `${known.sentence}${known.words === true ? `: ${wordsOf(error)}` : ''}${of}`;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function constraintOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('constraint' in error)) return null;
  return typeof error.constraint === 'string' ? error.constraint : null;
}
