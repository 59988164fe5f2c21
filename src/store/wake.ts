import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Tx } from '../kernel/sql.ts';
import type { Database } from './database.ts';

const CHANNEL = 'onceper_delivering';
const RECONNECT_MS = 1_000;
const END_MS = 1_000;

/** Tells listening relays, when the caller's transaction commits, that a key has effects to deliver. */
export async function notifyDelivering(tx: Tx, key: string): Promise<void> {
  await tx.query(`select pg_notify('${CHANNEL}', $1)`, [key]);
}

/**
 * Calls `onWake` for each such message until `signal` aborts, then resolves. It only wakes: messages are lost with the
 * connection, which is made again meanwhile, so whoever listens polls too. The connection is its own and not the pool's,
 * where it would be one less for good. Never rejects.
 */
export async function listenDelivering(db: Database, onWake: () => void, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await listenOnce(db, onWake, signal);
    await delay(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function listenOnce(db: Database, onWake: () => void, signal: AbortSignal): Promise<void> {
  const client = new pg.Client({ ...db.pool.options, application_name: `${db.name} listen` });
  const ended = new Promise<void>((resolve) => {
    client.once('end', resolve);
    // A fault of this connection costs a second of waking; what is wrong with the database is told by whoever asks it.
    client.on('error', () => resolve());
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
  client.on('notification', onWake);
  const began = begin(client, onWake);
  // A database that does not answer must not hold a drain up.
  await Promise.race([ended, began.then((listens) => (listens ? ended : undefined))]);
  await Promise.race([client.end().catch(() => undefined), delay(END_MS, undefined, { ref: false })]);
}

async function begin(client: pg.Client, onWake: () => void): Promise<boolean> {
  try {
    await client.connect();
    await client.query(`listen ${CHANNEL}`);
  } catch {
    return false;
  }
  // What was told before we listened is found by one look now.
  onWake();
  return true;
}
