import type { Command } from 'commander';
import { mayAct, type Role } from '../kernel/actor.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Session } from './session.ts';

/**
 * What each command needs of whoever types it: a viewer reads, an operator asks, an approver decides. `anyone` is for what no
 * person does in the ledger: processes, servers, the schema; the database's own roles guard those. Each command has its line.
 */
export const NEEDS: Readonly<Record<string, Role | 'anyone'>> = {
  up: 'anyone',
  down: 'anyone',
  demo: 'anyone',
  drill: 'anyone',
  migrate: 'anyone',
  worker: 'anyone',
  relay: 'anyone',
  webhooks: 'anyone',
  gateway: 'anyone',
  server: 'anyone',
  'token issue': 'anyone',
  'token show': 'anyone',
  periods: 'viewer',
  show: 'viewer',
  why: 'viewer',
  effects: 'viewer',
  doctor: 'viewer',
  'audit list': 'viewer',
  'audit verify': 'viewer',
  'schedule list': 'viewer',
  'schedule preview': 'viewer',
  'outbox list': 'viewer',
  'outbox show': 'viewer',
  takeover: 'operator',
  skip: 'operator',
  adjust: 'operator',
  'hold list': 'viewer',
  'hold release': 'operator',
  'backfill request': 'operator',
  'backfill list': 'viewer',
  'backfill show': 'viewer',
  'backfill cancel': 'operator',
  'approvals list': 'viewer',
  'approvals show': 'viewer',
  /** Whoever asked may take it back; the command itself asks for the role of an approver from everybody else. */
  'approvals reject': 'viewer',
  'approvals edit': 'operator',
  'approvals approve': 'approver',
  'approvals execute': 'approver',
  import: 'operator',
  run: 'operator',
  'schedule apply': 'operator',
  'schedule pause': 'operator',
  'schedule resume': 'operator',
  'destination list': 'viewer',
  'destination resume': 'operator',
  'outbox retry': 'operator',
  'outbox resolve': 'operator',
  'outbox clean': 'operator',
};

/** Refuses a command to whoever lacks its role. Throws OnceperError `forbidden`. */
export async function permit(session: Session, command: Command): Promise<void> {
  const path = pathOf(command);
  const needs = NEEDS[path];
  if (needs === 'anyone') return;
  if (WRITES_FOR_VIEWERS.has(path)) session.acts(path);
  if (needs !== undefined) return requireRole(session, needs, path);
  throw new OnceperError({
    code: 'forbidden',
    message: `no role is stated for ${path}`,
    remedy: 'give it a line in src/app/permissions.ts',
    at: path,
  });
}

/** Commands that write for somebody whose role they find out themselves. */
const WRITES_FOR_VIEWERS: ReadonlySet<string> = new Set(['approvals reject']);

/** Whether a command writes for people. */
export function isWriting(path: string): boolean {
  const needs = NEEDS[path];
  return needs === 'operator' || needs === 'approver' || WRITES_FOR_VIEWERS.has(path);
}

/** Insists on a role where a command's options decide which. Throws OnceperError `forbidden`. */
export async function requireRole(session: Session, role: Role, what: string): Promise<void> {
  if (role !== 'viewer') session.acts(what);
  const actor = await session.actor();
  if (mayAct(actor, role)) return;
  const roles = actor.roles.length === 0 ? 'no role' : `the roles ${actor.roles.join(', ')} only`;
  throw new OnceperError({
    code: 'forbidden',
    message: `${what} needs the role ${role}, and ${actor.id} has ${roles}`,
    remedy:
      session.config.identity.token === null
        ? `set ONCEPER_TOKEN to a token with the role ${role} (docs/configuration.md, "Who we are")`
        : `ask for a token with the role ${role}, or somebody who has it`,
    at: actor.id,
  });
}

/** A command's words without the program's: `outbox retry`. */
export function pathOf(command: Command): string {
  const words: string[] = [];
  for (let at: Command | null = command; at?.parent; at = at.parent) words.unshift(at.name());
  return words.join(' ');
}
