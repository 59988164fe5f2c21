import { codeOf, OnceperError } from '../kernel/error.ts';

/**
 * SQLSTATEs and socket codes turned into stable codes. The classes follow PostgreSQL's appendix A: 08 connection, 57P0x
 * operator intervention, 55P03 lock time-out, 57014 statement time-out, 25P03/25P04 idle and transaction time-out, 40xxx
 * roll-back, 42P01 and 3F000 no such table or schema.
 */
const CODES: readonly (readonly [RegExp, string])[] = [
  [/^(ECONNREFUSED|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT|57P03|53300|3D000|28000|28P01)$/, 'database_unreachable'],
  [/^(08.{3}|57P01|57P02|ECONNRESET|EPIPE)$/, 'connection_lost'],
  [/^55P03$/, 'lock_timeout'],
  [/^57014$/, 'statement_timeout'],
  [/^(25P03|25P04|57P05)$/, 'transaction_timeout'],
  [/^40P01$/, 'deadlock'],
  [/^40001$/, 'serialization'],
  [/^23.{3}$/, 'constraint'],
  [/^53.{3}$/, 'database_full'],
  [/^25006$/, 'database_read_only'],
  [/^(42P01|3F000)$/, 'not_migrated'],
];

const REMEDY: Readonly<Record<string, string>> = {
  database_unreachable: 'start it (npx onceper up) or point DATABASE_URL at the server that runs',
  connection_lost: 'nothing is lost: the transaction rolled back and the next attempt reads the ledger again',
  database_full: 'free space or connections on the database server',
  database_read_only: 'point DATABASE_URL at the primary',
  not_migrated: 'npx onceper migrate',
};

/**
 * What went wrong in the database, as an OnceperError with a stable code; an OnceperError passes through. Texts of the
 * server are kept as `cause`, and of its message only the constraint's name is repeated: it can hold a row's values.
 */
export function faultOf(error: unknown): OnceperError {
  if (error instanceof OnceperError) return error;
  const sqlstate = codeOf(error) ?? '';
  const known = CODES.find(([pattern]) => pattern.test(sqlstate));
  const code = known?.[1] ?? (wasCut(error) ? 'connection_lost' : 'database');
  const constraint = constraintOf(error);
  return new OnceperError({
    code,
    message: constraint === null ? sentence(code, sqlstate, error) : `constraint ${constraint} refused the write`,
    remedy: REMEDY[code] ?? 'see the log of the database server at this moment',
    at: constraint,
    cause: error,
  });
}

function wasCut(error: unknown): boolean {
  return (
    error instanceof Error &&
    /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/.test(
      error.message,
    )
  );
}

function constraintOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('constraint' in error)) return null;
  return typeof error.constraint === 'string' ? error.constraint : null;
}

function sentence(code: string, sqlstate: string, error: unknown): string {
  if (code === 'database_unreachable') return `the database can't be reached (${sqlstate})`;
  if (code === 'not_migrated') return `the database lacks a table of this release (${sqlstate})`;
  if (code === 'database') return `the database refused a statement (${sqlstate === '' ? String(error) : sqlstate})`;
  return `the database ended the transaction: ${code.replaceAll('_', ' ')}${sqlstate === '' ? '' : ` (${sqlstate})`}`;
}
