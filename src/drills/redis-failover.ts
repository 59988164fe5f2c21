import type { ExpiringLock } from './expiring-lock.ts';
import { type Ask, lockIn, type Redis, startRedis } from './redis-lock.ts';
import { startPlainProxy } from './tcp-proxy.ts';
import { until } from './until.ts';

/** A lock in a Redis with a replica, which can be made to fail over while the newest writes are on their way. */
export interface ReplicatedLock extends ExpiringLock {
  /** From now on what the primary writes does not arrive at the replica; Redis answers without waiting for it. */
  delayReplica(): void;
  /** The primary is gone, and the replica takes its place, as a sentinel would have it. */
  failOver(): Promise<void>;
}

/** Starts two Redis, one the replica of the other over a line that can be held. */
export async function createReplicatedLock(file: string, folder: string): Promise<ReplicatedLock> {
  const primary = await startRedis(file, folder);
  const line = await startPlainProxy(`127.0.0.1:${primary.port}`);
  const replica = await startRedis(file, folder, ['--replicaof', '127.0.0.1', String(line.port)]);
  await until('the replica to have what its primary has', () => isInStep(primary, replica), 30_000);
  let now: Redis = primary;
  const ask: Ask = (words) => now.ask(words);
  return {
    ...lockIn('SET NX PX in a Redis with a replica', ask, async () => {
      await Promise.all([primary.stop(), replica.stop(), line.close()]);
    }),
    delayReplica: () => line.hush(),
    async failOver() {
      await primary.stop();
      await replica.ask(['REPLICAOF', 'NO', 'ONE']);
      now = replica;
    },
  };
}

/** A key of the primary's is at the replica: its link stands and replicates. */
async function isInStep(primary: Redis, replica: Redis): Promise<boolean> {
  await primary.ask(['SET', 'in-step', 'yes']);
  return (await replica.ask(['GET', 'in-step'])) === 'yes';
}
