import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { createReplicatedLock } from '../../src/drills/redis-failover.ts';
import { findRedis } from '../../src/drills/redis-lock.ts';
import { runDrillProcess } from '../drills/drill-process.ts';

const redis = findRedis(process.env['PATH'] ?? '');

test.skipIf(redis === null)(
  'a replica that is promoted without the key gives the lock to a second holder (needs redis-server on the path)',
  async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'onceper-redis-'));
    const lock = await createReplicatedLock(redis ?? '', folder);
    try {
      lock.delayReplica();
      expect(await lock.take('first', 600_000)).toBe(true);
      expect(await lock.take('second', 600_000)).toBe(false);
      await lock.failOver();
      expect(await lock.isHeldBy('first')).toBe(false);
      expect(await lock.take('second', 600_000)).toBe(true);
    } finally {
      await lock.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);

test.skipIf(redis === null)(
  'lock-only shows it with payments: seven of ten merchants twice, and nobody by ours (needs redis-server on the path)',
  async () => {
    const { code, facts, differing } = await runDrillProcess('lock-only');
    expect({ code, differing }).toEqual({ code: 0, differing: [] });
    expect(facts).toContainEqual(
      expect.objectContaining({ what: 'a lock whose primary fails over: merchants paid twice', seen: '7' }),
    );
  },
  300_000,
);
