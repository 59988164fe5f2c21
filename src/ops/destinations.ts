import { OnceperError } from '../kernel/error.ts';
import { appendAudit } from '../store/audit.ts';
import { type Database, transaction } from '../store/database.ts';
import { type DestinationStanding, openDestination, readDestinations } from '../store/destinations.ts';
import { notifyDelivering } from '../store/wake.ts';
import { inWords } from './both-clocks.ts';

/** A pause in one clause, for doctor, `why` and `effects`. */
export function pauseInWords(pause: Omit<DestinationStanding, 'state'>): string {
  const { name, since, ageMs, status, code, probes, probeAt } = pause;
  const tried = probes === 0 ? '' : `, tried ${probes} times since`;
  return `${name} is paused since ${since} (${inWords(ageMs)}) by ${status ?? ''} ${code ?? ''}${tried}, next at ${probeAt ?? ''}`;
}

/** Who lets a destination go on, and why. */
export interface Resume {
  readonly name: string;
  readonly actor: string;
  readonly reason: string;
}

/**
 * Opens a paused destination at once, by a person's word, which is audited; relays are woken. What still bars it pauses it again.
 * Returns it as it stood. Throws OnceperError `unknown_destination`, `nothing_to_resume`.
 */
export async function resumeDestination(db: Database, { name, actor, reason }: Resume): Promise<DestinationStanding> {
  return transaction(db, { label: 'destination', lockTimeout: 5_000 }, async (tx) => {
    const before = (await readDestinations(tx)).find((known) => known.name === name);
    if (before === undefined) throw unknownDestination(name);
    if (!(await openDestination(tx, name))) throw nothingToResume(name);
    await notifyDelivering(tx, name);
    const { since, status, code } = before;
    const detail = { reason, since, status, code };
    await appendAudit(tx, { actor, verb: 'resume', job: null, key: null, run: null, subject: name, detail });
    return before;
  });
}

function unknownDestination(name: string): OnceperError {
  return new OnceperError({
    code: 'unknown_destination',
    message: 'no destination of this name can pause',
    remedy: 'npx onceper destination list',
    at: name,
  });
}

function nothingToResume(name: string): OnceperError {
  return new OnceperError({
    code: 'nothing_to_resume',
    message: 'the destination is open',
    remedy: 'npx onceper destination list',
    at: name,
  });
}
