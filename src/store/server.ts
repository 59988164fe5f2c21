import type { Tx } from '../kernel/sql.ts';

/** What kind of server a database lives on. */
export interface Server {
  /** For example `18.1`. */
  readonly version: string;
  readonly major: number;
  readonly database: string;
  /** True on a replica, from which nothing may be decided. */
  readonly isReplica: boolean;
}

export async function serverOf(tx: Tx): Promise<Server | null> {
  const { rows } = await tx.query<Server>(
    `select split_part(current_setting('server_version'), ' ', 1) as version,
            current_setting('server_version_num')::int4 / 10000 as major,
            current_database() as database, pg_is_in_recovery() as "isReplica"`,
  );
  return rows[0] ?? null;
}
