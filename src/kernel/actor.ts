import { OnceperError } from './error.ts';

/** What a person may do: a viewer reads, an operator asks, an approver decides. A role includes no other. */
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
}

/** Where an actor comes from; the word before the colon of an id. */
export type ActorKind = 'os' | 'user' | 'schedule' | 'worker' | 'webhook';

/**
 * The id of an actor in its one spelling: `kind:name`, lower case, blanks as `-`. Case must not make two people of one, or an
 * asker could approve as ALICE; that it makes one of two at worst refuses an approval. Throws OnceperError `malformed_actor`.
 */
export function actorId(kind: ActorKind, name: string): string {
  const id = normaliseActorId(`${kind}:${name}`);
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

const MAX_LENGTH = 200;
