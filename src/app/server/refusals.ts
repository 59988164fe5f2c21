import { appendAudit } from '../../store/audit.ts';
import { type Database, transaction } from '../../store/database.ts';

/** Somebody who was not let do what writes. */
export interface Refusal {
  /** Null where the token did not hold: what it says of anybody is worth nothing. */
  readonly actor: string | null;
  readonly command: string;
  readonly code: string;
  readonly from: string;
}

const EVERY_MS = 60_000;
const MOST_REMEMBERED = 1_000;

/**
 * Writes refusals of what would have written into the audit: of one actor, address and code once a minute, and of all strangers
 * together no more than a thousand, so that a flood of forged tokens fills the log and not the audit.
 */
export function createRefusals(db: Database, release: string): (refusal: Refusal) => Promise<void> {
  const written = new Map<string, number>();
  return async ({ actor, command, code, from }) => {
    const now = performance.now();
    for (const [key, at] of written) if (now - at >= EVERY_MS) written.delete(key);
    const key = `${actor ?? ''} ${from} ${code}`;
    if (written.has(key) || written.size >= MOST_REMEMBERED) return;
    written.set(key, now);
    const entry = { actor: actor ?? `server:${release}`, verb: 'refuse', job: null, key: null, run: null } as const;
    await transaction(db, { label: 'refusal', lockTimeout: 5_000 }, (tx) =>
      appendAudit(tx, { ...entry, detail: { code, command, from } }),
    );
  };
}
