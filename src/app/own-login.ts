import { OnceperError } from '../kernel/error.ts';
import type { Database } from '../store/database.ts';
import { overprivileged } from '../store/privileges.ts';

/** Whoever may take a trigger away could make the ledger say anything: a process is not that login. Throws `overprivileged`. */
export async function refuseOverprivileged(db: Database, process: 'worker' | 'server'): Promise<void> {
  const found = await overprivileged(db);
  if (found === null) return;
  const login = process === 'worker' ? 'onceper_app' : 'onceper_people';
  throw new OnceperError({
    code: 'overprivileged',
    message: `the ${process}'s login ${found.login} is ${found.as === 'owner' ? 'an owner of schema onceper' : 'a superuser'} of the database`,
    remedy: `give the ${process} a login of its own: create role ${login} login in role onceper_${process} (docs/roles.md)`,
    at: found.login,
  });
}
