import type { Tx } from '../kernel/sql.ts';

/** Whether the server says that it serves one machine only. */
const SAYS_EMBEDDED = `coalesce(current_setting('onceper.embedded', true), '') = 'on'`;

/** What a login may do that a worker must not: undo every constraint and trigger, or those of our schemas. */
export interface Overprivileged {
  readonly login: string;
  readonly as: 'superuser' | 'owner';
}

/**
 * Whether the session's login could change what binds it, as a superuser or as an owner of schema onceper; null where it can't.
 * Asked of the login and not of the role it acts as, which it could leave. A server that says it serves one machine only
 * (`onceper.embedded`, which `up` sets) is not asked more.
 */
export async function overprivileged(tx: Tx): Promise<Overprivileged | null> {
  const { rows } = await tx.query<{ login: string; isSuperuser: boolean; isOwner: boolean; isEmbedded: boolean }>(
    `select session_user::text as login, r.rolsuper as "isSuperuser", pg_has_role(r.oid, n.nspowner, 'member') as "isOwner",
            ${SAYS_EMBEDDED} as "isEmbedded"
       from pg_roles r cross join pg_namespace n
      where r.rolname = session_user and n.nspname = 'onceper'`,
  );
  const [found] = rows;
  if (found === undefined || found.isEmbedded) return null;
  if (found.isSuperuser) return { login: found.login, as: 'superuser' };
  return found.isOwner ? { login: found.login, as: 'owner' } : null;
}

/** What a login may do for people: act by itself on a server of one machine, or past the process that acts for people. */
export interface LoginStanding {
  readonly login: string;
  readonly isEmbedded: boolean;
  /** In group onceper_break_glass, or an owner of schema onceper. */
  readonly mayBreakGlass: boolean;
}

/** How the session's login stands. */
export async function loginStanding(tx: Tx): Promise<LoginStanding> {
  const { rows } = await tx.query<LoginStanding>(
    `select session_user::text as login,
            ${SAYS_EMBEDDED} as "isEmbedded",
            exists (select from pg_roles g
                     where (g.rolname = 'onceper_break_glass'
                            or g.oid = (select nspowner from pg_namespace where nspname = 'onceper'))
                       and pg_has_role(session_user, g.oid, 'member')) as "mayBreakGlass"`,
  );
  const [found] = rows;
  if (found === undefined) throw new Error('a select without from returned no row');
  return found;
}
