import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { OnceperError } from '../kernel/error.ts';

/** What every session runs with, whatever the server's defaults: times in UTC, and each statement seeing what is committed. */
const SETTINGS = {
  TimeZone: 'UTC',
  default_transaction_isolation: 'read committed',
  DateStyle: 'ISO',
  search_path: 'public',
} as const;

/** The settings as the first message of a connection carries them. */
export const SESSION_OPTIONS = Object.entries(SETTINGS)
  .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', String.raw`\ `)}`)
  .join(' ');

interface Seen {
  readonly backend: number;
  readonly fact: string | null;
}

/**
 * Makes sure that a connection is a session of PostgreSQL's, as locks, LISTEN and settings need it: what we ask for at its start
 * is so, it keeps its server process and what is set in it, and no other connection is given the same. A pooler in transaction
 * mode takes one of these away without an error, and hours later a lock holds nothing. `config` opens the other connection.
 * Throws OnceperError `pooler_not_supported` with the fact that gave it away, and what the driver throws.
 */
export async function checkSession(session: pg.ClientBase, config: pg.ClientConfig): Promise<void> {
  const other = new pg.Client(config);
  // A connection that ends is reported by the query that fails.
  other.on('error', () => undefined);
  await other.connect();
  try {
    const fact = randomUUID();
    await refuseOtherSettings(session);
    await session.query(`select set_config('onceper.session', $1, false)`, [fact]);
    // In this order: a pooler that hands out the last process first gives it to the other, one that goes round changes ours.
    const [first, second] = [await look(session), await look(session)];
    const stranger = await look(other);
    const third = await look(session);
    if (stranger.backend === first.backend || stranger.fact === fact)
      throw refused('two connections share one session');
    if ([first, second, third].some((seen) => seen.fact !== fact || seen.backend !== first.backend)) {
      throw refused('a connection changes its session between two statements');
    }
  } finally {
    await other.end();
  }
}

async function look(client: pg.ClientBase): Promise<Seen> {
  const { rows } = await client.query<Seen>(
    `select pg_backend_pid() as backend, current_setting('onceper.session', true) as fact`,
  );
  const [seen] = rows;
  if (seen === undefined) throw refused('a question about the session had no answer');
  return seen;
}

async function refuseOtherSettings(session: pg.ClientBase): Promise<void> {
  const names = Object.keys(SETTINGS);
  const { rows } = await session.query<{ name: string; value: string }>(
    'select name, current_setting(name) as value from unnest($1::text[]) as name',
    [names],
  );
  for (const [name, asked] of Object.entries(SETTINGS)) {
    const is = rows.find((row) => row.name === name)?.value ?? 'not known';
    // The style of dates has a second part, their order, which nothing here writes.
    if (is !== asked && !is.startsWith(`${asked},`)) throw refused(`${name} was asked to be ${asked}, and is ${is}`);
  }
}

function refused(fact: string): OnceperError {
  return new OnceperError({
    code: 'pooler_not_supported',
    message: `between here and PostgreSQL is a pooler that does not keep sessions: ${fact}`,
    remedy: 'point DATABASE_URL at PostgreSQL itself, not at a pooler such as pgbouncer',
  });
}
