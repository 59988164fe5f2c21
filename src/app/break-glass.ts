import { type Actor, normaliseActorId } from '../kernel/actor.ts';
import { OnceperError } from '../kernel/error.ts';
import { appendAudit } from '../store/audit.ts';
import { type Database, transaction } from '../store/database.ts';
import { loginStanding } from '../store/privileges.ts';
import { actorOf } from './actor.ts';
import type { Config } from './config.ts';
import type { Session } from './session.ts';

/*
 * Who may write from here. A trusted process, `onceper server`, decides and acts for people; the command line does so by itself
 * with the embedded servers only. ONCEPER_BREAK_GLASS is the way past a server that is down: for the few logins that may, and
 * never in silence.
 */

/** Who types. Past the server, somebody without a token is known by the name that the machine has for them. */
export async function personOf({ identity, server }: Config): Promise<Actor> {
  if (server.breakGlass === null || identity.token !== null || identity.isEmbedded) return actorOf(identity);
  const id = normaliseActorId(`break-glass:${identity.osUser}`);
  return { id, name: null, roles: ['viewer', 'operator', 'approver'], token: null };
}

/**
 * Lets a command that writes have the database: with the embedded servers, or by breaking the glass, which is in the audit and
 * committed before anything else is done. Throws OnceperError `server_needed`, `break_glass_refused`.
 */
export async function admitHere(db: Database, session: Session, what: string): Promise<void> {
  const { identity, server } = session.config;
  if (identity.isEmbedded) return;
  const { login, isEmbedded, mayBreakGlass } = await loginStanding(db);
  if (server.breakGlass === null) {
    if (isEmbedded) return;
    throw serverNeeded(what);
  }
  if (!mayBreakGlass) throw refused(login);
  const { id: actor } = await session.actor();
  const detail = { reason: server.breakGlass, command: what, login };
  await transaction(db, { label: 'break-glass' }, (tx) =>
    appendAudit(tx, { actor, verb: 'break-glass', job: null, key: null, run: null, detail }),
  );
  session.note(
    `GLASS BROKEN: ${what} is done past onceper server by ${actor} as the database login ${login}; it is in the audit: ${server.breakGlass}`,
  );
}

function serverNeeded(what: string): OnceperError {
  return new OnceperError({
    code: 'server_needed',
    message: `${what} writes, and with this database onceper server alone does that for people`,
    remedy: 'set ONCEPER_SERVER to its address; where it is down: docs/server.md, "Breaking the glass"',
    at: 'ONCEPER_SERVER',
  });
}

function refused(login: string): OnceperError {
  return new OnceperError({
    code: 'break_glass_refused',
    message: `the database login ${login} may not act past onceper server`,
    remedy: 'use a login in group onceper_break_glass, or set ONCEPER_SERVER and unset ONCEPER_BREAK_GLASS',
    at: 'ONCEPER_BREAK_GLASS',
  });
}
