import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepWatch, rememberedAnchor } from '../../src/app/watch.ts';
import type { Anchor } from '../../src/kernel/audit.ts';
import { createLog } from '../../src/observability/log.ts';
import { appendAudit, auditHead } from '../../src/store/audit.ts';
import { filteredEntries } from '../../src/store/audit-read.ts';
import { type Database, openDatabase, transaction } from '../../src/store/database.ts';
import { readFreeze } from '../../src/store/epoch.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { useTestBank } from '../support/simulator.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';
import { documentOf, typed } from './command-line.ts';

const bank = useTestBank();
const jobs = [createTinyJob(1)];
const { privateKey } = generateKeyPairSync('ed25519');
const lines: string[] = [];
let database: TestDatabase;
let namespace: TestNamespace;
let db: Database;
let worker: TestWorker;

beforeAll(async () => {
  [database, namespace] = [await createTestDatabase(), await createTestNamespace()];
  db = openDatabase({ url: database.url, name: 'test', max: 4 });
  await installTinyJob(db, { first: '2026-08' });
  const log = createLog({ name: 'worker', release: 'test', level: 'info', write: (line) => void lines.push(line) });
  worker = await startTestWorker({ namespace, databaseUrl: database.url, jobs, log, auditKey: privateKey });
  await keepWatch(worker.client, 'onceper');
});
afterAll(async () => {
  await worker.stop();
  await db.close();
  await database.drop();
});

async function append(count: number): Promise<void> {
  const entry = { actor: 'user:ann', verb: 'pause', job: 'tiny', key: null, run: null, detail: {} } as const;
  for (let at = 0; at < count; at += 1) await appendAudit(db, entry);
}

/** Asks for looks until what is remembered outside is as it should be. */
function anchorOnce(what: string, isIt: (anchor: Anchor) => boolean): Promise<Anchor> {
  const looked = async () => {
    await worker.client.workflow.getHandle('onceper-epoch').signal('look');
    const anchor = await rememberedAnchor(worker.client);
    return anchor !== null && isIt(anchor) ? anchor : null;
  };
  return waitFor(looked, { what });
}

/** Cuts the last entries and moves the head back to what is left, as the database's owner can. */
async function cutTail(count: number): Promise<void> {
  await transaction(db, {}, async (tx) => {
    await tx.query('set local session_replication_role = replica');
    await tx.query(`delete from onceper.audit where seq > (select seq - $1::int8 from onceper.audit_head)`, [count]);
    await tx.query(
      `update onceper.audit_head set (seq, hash) = (select seq, hash from onceper.audit order by seq desc limit 1)`,
    );
  });
}

const eventsOf = (name: string) => lines.filter((line) => line.includes(`"event":"${name}"`)).length;

function onceper(argv: readonly string[], gatewayUrl: string) {
  const environment = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: namespace.address,
    TEMPORAL_NAMESPACE: namespace.namespace,
    ONCEPER_GATEWAY_URL: gatewayUrl,
    ONCEPER_GATEWAY_VISIBILITY_DELAY: '0ms',
  };
  return typed([...argv, '--json'], environment, { jobs });
}

test('an anchor never falls: a tail cut with its head is told of, freezes delivery, and nothing is anchored in its place', async () => {
  const { url: gatewayUrl } = await bank.start();
  await append(5);
  const { seq: last } = await auditHead(db);
  const before = await anchorOnce('the anchor', ({ seq }) => seq === last.toString());
  await cutTail(2);
  const freeze = await waitFor(
    async () => {
      await anchorOnce('a look', () => true);
      return readFreeze(db);
    },
    { what: 'the freeze' },
  );
  expect(freeze.reason).toBe(`the audit ends at entry ${last - 2n}, and entry ${last} was anchored outside`);
  const signed = eventsOf('audit_anchor');

  // Other entries under the numbers of those that are gone make it no better.
  await append(4);
  const told = eventsOf('audit_fell');
  expect(await anchorOnce('another look', () => eventsOf('audit_fell') > told)).toMatchObject({
    seq: before.seq,
    hash: before.hash,
  });
  expect(eventsOf('audit_anchor')).toBe(signed);
  expect((await onceper(['audit', 'verify', '--temporal'], gatewayUrl)).code).toBe(6);

  // A person's word gives the anchor up, and says so in the audit.
  expect(documentOf(await onceper(['doctor', '--reconcile-rewind'], gatewayUrl))).toMatchObject({ kind: 'thawed' });
  const any = { job: null, key: null, actor: null, from: null, to: null };
  const [thaw] = await filteredEntries(db, { ...any, verb: 'thaw' }, { before: null, limit: 1 });
  expect(JSON.parse(thaw?.detail ?? '{}')).toMatchObject({ anchor: `${last} ${before.hash}` });
  const after = await anchorOnce('an anchor of what there is now', ({ hash }) => hash !== before.hash);
  expect(BigInt(after.seq)).toBeGreaterThan(last);
  expect(await readFreeze(db)).toBeNull();
});
