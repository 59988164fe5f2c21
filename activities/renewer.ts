import { leaseTimes } from '../src/kernel/lease.ts';
import type { Log } from '../src/observability/log.ts';
import { renewLease } from '../src/store/close.ts';
import type { Database } from '../src/store/database.ts';
import type { Grant } from '../src/store/slices.ts';

/** A share in the one renewer of a key and fence in this process; `lost` aborts when the lease is no longer ours. */
interface Renewal {
  readonly lost: AbortSignal;
  release(): void;
}

/** Keeps leases alive while slices of their grants are in flight in this process. */
export interface Renewer {
  hold(grant: Grant): Renewal;
}

interface Held {
  holders: number;
  readonly timer: NodeJS.Timeout;
  readonly lost: AbortController;
}

/**
 * One renewer a process and key: the first slice in flight starts it, the last one ends it, so that nothing renews during
 * close. A renewal that fails to reach the database is tried again at the next beat; only the database's answer that the
 * lease is gone aborts `lost`. `db` must be a pool of its own: behind a slice's statement a renewal would wait for it.
 */
export function createRenewer(db: Database, log: Log): Renewer {
  const held = new Map<string, Held>();
  return {
    hold(grant) {
      const id = `${grant.key} ${grant.fence}`;
      const entry = held.get(id) ?? start(db, log, grant);
      held.set(id, entry);
      entry.holders += 1;
      let released = false;
      return {
        lost: entry.lost.signal,
        release() {
          if (released) return;
          released = true;
          entry.holders -= 1;
          if (entry.holders > 0) return;
          clearInterval(entry.timer);
          held.delete(id);
        },
      };
    },
  };
}

function start(db: Database, log: Log, grant: Grant): Held {
  const lost = new AbortController();
  let beating = false;
  const beat = async () => {
    if (beating || lost.signal.aborted) return;
    beating = true;
    try {
      if (await renewLease(db, grant)) log({ event: 'lease_renewed', key: grant.key, fence: grant.fence });
      else lost.abort();
    } catch (error) {
      log({
        event: 'database_idle_error',
        key: grant.key,
        message: error instanceof Error ? error.message : String(error),
      });
    } finally {
      beating = false;
    }
  };
  const timer = setInterval(() => void beat(), leaseTimes(grant.times.lease).renewEvery);
  return { holders: 0, timer, lost };
}
