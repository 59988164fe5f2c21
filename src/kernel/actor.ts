import { OnceperError } from './error.ts';

/** What a person may do: a viewer reads, an operator asks, an approver decides. Neither of these two includes the other. */
export const ROLES = ['viewer', 'operator', 'approver'] as const;
export type Role = (typeof ROLES)[number];

/**
 * Who acts. Two actors are the same exactly when their ids are equal: `os:alice`, `user:alice`, `schedule:settlement`,
 * `worker:dev`. The name is for people to read and decides nothing. What is no person has no roles.
 */
export interface Actor {
  readonly id: string;
  readonly name: string | null;
  readonly roles: readonly Role[];
  /** The signed text that the actor was verified from, which proves a decision; null where the operating system says who it is. */
  readonly token: string | null;
}

/** Where an actor comes from; the word before the colon of an id. */
export type ActorKind = 'os' | 'user' | 'schedule' | 'worker' | 'webhook';

/**
 * The id of an actor in its one spelling: `kind:name`, lower case, blanks as `-`. Case must not make two people of one, or an
 * asker could approve as ALICE; that it makes one of two at worst refuses an approval. Throws OnceperError `malformed_actor`.
 */
export function actorId(kind: ActorKind, name: string): string {
  const id = normaliseActorId(`${kind}:${name.normalize('NFKC').trim()}`);
  if (name.trim() !== '' && id.length <= MAX_LENGTH) return id;
  throw new OnceperError({
    code: 'malformed_actor',
    message: `an actor's name has 1 to ${MAX_LENGTH - kind.length - 1} characters`,
    remedy: 'give the identity that your identity provider or operating system knows',
    at: kind,
  });
}

/** The same spelling for an id that came from elsewhere: a start in Temporal may name whoever it likes. */
export function normaliseActorId(id: string): string {
  const spelled = id.normalize('NFKC').trim().toLowerCase().replaceAll(/\s+/g, '-').slice(0, MAX_LENGTH);
  return spelled === '' ? 'unknown' : spelled;
}

/** True where the actor may do what a role is for. Whoever has any role may read. */
export function mayAct(actor: Actor, as: Role): boolean {
  return as === 'viewer' ? actor.roles.length > 0 : actor.roles.includes(as);
}

/** The roles that a text names, with commas or blanks between them, each once; null where one is no role. */
export function parseRoles(text: string): readonly Role[] | null {
  const named = text.split(/[\s,]+/).filter((word) => word !== '');
  const known = ROLES.filter((role) => named.includes(role));
  return named.every((word) => ROLES.some((role) => role === word)) && known.length > 0 ? known : null;
}

const MAX_LENGTH = 200;
