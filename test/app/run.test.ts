import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ShownKey } from '../../src/ops/show.ts';
import { openDatabase } from '../../src/store/database.ts';
import { createTestDatabase } from '../support/database.ts';
import { createTestNamespace, type TestNamespace } from '../support/namespace.ts';
import { createTinyJob, installTinyJob } from '../support/tiny-job.ts';
import { waitFor } from '../support/wait.ts';
import { startTestWorker, type TestWorker } from '../support/worker.ts';
import { as, documentOf, type ErrorDocument, NOBODY, type Printed, typed } from './command-line.ts';

interface RunDocument {
  readonly key: string;
  readonly run: string;
  readonly decision: string | null;
  readonly document: { readonly id: string } | null;
  readonly effects: Readonly<Record<string, number>>;
  readonly state: string | null;
  readonly owner: string | null;
}

/** While it burns every attempt fails; then a person mends the cause. */
const disk = { isOnFire: false };
/** What the job that makes no document stores. */
const counted: { result: unknown } = { result: null };
const jobs = [
  createTinyJob(2, {
    needs: 'nothing',
    inspect: (_, { period, overrides }) =>
      Promise.resolve(
        period === '2026-04' && overrides['empty'] !== 'true'
          ? { kind: 'held', code: 'empty', reason: '2026-04 has nothing' }
          : { kind: 'ready' },
      ),
    perform: () => (disk.isOnFire ? Promise.reject(new Error('the disk is on fire')) : Promise.resolve()),
  }),
  createTinyJob(1, { id: 'counts', result: () => counted.result }),
];

let namespace: TestNamespace;
let environment: Record<string, string>;
let client: Client;
let worker: TestWorker | undefined;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  const database = await createTestDatabase();
  namespace = await createTestNamespace();
  const db = openDatabase({ url: database.url, name: 'test', max: 2 });
  await installTinyJob(db, { first: '2026-01', budget: 1 });
  await installTinyJob(db, { first: '2026-01', job: 'counts' });
  client = new Client({
    connection: await Connection.connect({ address: namespace.address }),
    namespace: namespace.namespace,
  });
  ends.push(
    () => db.close(),
    () => client.connection.close(),
    () => database.drop(),
  );
  environment = {
    DATABASE_URL: database.url,
    TEMPORAL_ADDRESS: namespace.address,
    TEMPORAL_NAMESPACE: namespace.namespace,
  };
});

afterAll(async () => {
  await worker?.stop();
  for (const end of ends) await end();
});

const run = (...line: string[]): Promise<Printed> => typed(['run', ...line], environment, { jobs });
const runJson = async (...line: string[]) => {
  const printed = await run(...line, '--json');
  return { exit: printed.code, ...documentOf<RunDocument>(printed) };
};

interface ShownRequest {
  readonly id: string;
  readonly digest: string;
  readonly subject: string;
}

/** The one open request about a key. */
async function requestFor(key: string): Promise<ShownRequest> {
  const listed = await typed(['approvals', 'list', '--key', key, '--json'], environment, { jobs });
  const [request, ...others] = documentOf<{ approvals: ShownRequest[] }>(listed).approvals;
  if (request === undefined || others.length > 0) throw new Error(`not one request: ${listed.out}`);
  return request;
}

/** A person who decides and never asks. */
const asBoss = async (...line: string[]) =>
  typed(line, { ...environment, ...(await as('boss', 'approver')) }, { jobs });

describe('run, while no worker polls', () => {
  test('says after a bounded wait that the start is kept, which worker to start, and exits 5', async () => {
    const printed = await run('tiny', '--period', '2026-01', '--within', '200ms', '--json');
    const { run: id, ...document } = documentOf<RunDocument>(printed);
    expect(document).toMatchObject({ key: 'tiny:2026-01', decision: null, document: null, effects: {} });
    expect(printed.err).toContain(
      `no worker polls task queue onceper; the start is kept in Temporal as tiny-run-${id}`,
    );
    expect(printed.err).toContain('npx onceper worker, then npx onceper why tiny:2026-01');
    expect(printed.code).toBe(5);
    expect((await client.workflow.getHandle(`tiny-run-${id}`).describe()).status.name).toBe('RUNNING');
  });

  test('refuses at the door what could never be admitted, and starts nothing', async () => {
    const next = `${new Date().getUTCFullYear() + 1}-01`;
    const refused: readonly (readonly [string[], string, number])[] = [
      [['tiny', '--period', '2026-1'], 'malformed_period', 2],
      [['tiny', '--period', '2026-13'], 'malformed_period', 2],
      [['tiny', '--at', 'yesterday'], 'malformed_instant', 2],
      [['tiny', '--period', '2026-01', '--set', 'speed=9'], 'unknown_override', 2],
      [['tiny', '--period', next], 'not_ended', 3],
      [['tiny', '--period', '2025-12'], 'before_first', 3],
      [['tiny', '--at', '2025-12-01T00:00:00Z'], 'before_first', 3],
    ];
    for (const [line, code, exit] of refused) {
      const printed = await run(...line, '--json');
      expect(documentOf<ErrorDocument>(printed).error.code).toBe(code);
      expect(printed.code).toBe(exit);
    }
    const { count } = await client.workflow.count(`WorkflowType = 'tick'`);
    expect(count).toBeLessThanOrEqual(1);
  });

  test('names the address of a Temporal that is not there', async () => {
    const printed = await typed(
      ['run', 'tiny', '--period', '2026-01'],
      { ...environment, TEMPORAL_ADDRESS: NOBODY },
      { jobs },
    );
    expect(printed.err.trimEnd().split('\n').at(-1)).toMatch(/^temporal_unreachable: .* \(127\.0\.0\.1:1\) — start it/);
    expect(printed.code).toBe(1);
  });

  test('names the namespace that is not there', async () => {
    const printed = await typed(
      ['run', 'tiny', '--period', '2026-01'],
      { ...environment, TEMPORAL_NAMESPACE: 'nowhere' },
      { jobs },
    );
    expect(printed.err.trimEnd().split('\n').at(-1)).toMatch(/^no_namespace: .* \(nowhere\) — npx temporal operator/);
    expect(printed.code).toBe(1);
  });
});

describe('run, with a worker', () => {
  beforeAll(async () => {
    worker = await startTestWorker({ namespace, databaseUrl: environment['DATABASE_URL'] ?? '', jobs });
  });

  test('the start that nobody had decided goes on when a worker comes', async () => {
    const waited = await runJson('tiny', '--period', '2026-01', '--wait');
    expect(['in_progress', 'duplicate', 'admitted']).toContain(waited.decision);
    expect(waited).toMatchObject({ exit: 0, state: 'done', document: { id: 'doc-tiny:2026-01' } });
  });

  test('admitted and waited for it prints the document and exits 0; again it is a duplicate with the same', async () => {
    const first = await runJson('tiny', '--period', '2026-02', '--wait');
    expect(first).toMatchObject({
      exit: 0,
      key: 'tiny:2026-02',
      decision: 'admitted',
      document: { id: 'doc-tiny:2026-02', totals: {} },
      effects: { pending: 2 },
      owner: first.run,
    });
    const again = await runJson('tiny', '--period', '2026-02');
    expect(again).toMatchObject({ exit: 0, decision: 'duplicate', document: first.document, owner: first.run });
    expect(again.run).not.toBe(first.run);
  });

  test.each([
    ['2026-01', { statements: 3 }, '{"statements":3}'],
    ['2026-02', 'sent\u001b[2J', String.raw`"sent\u001b[2J"`],
    ['2026-03', 7, '7'],
    ['2026-04', null, 'null'],
    ['2026-05', undefined, 'null'],
    ['2026-06', ['a', { document: 1 }], '["a",{"document":1}]'],
    ['2026-07', { document: { id: 'd-1', pages: 4 } }, '{"document":{"id":"d-1","pages":4}}'],
  ])(
    'of a job that makes no document, %s: run, show and why print the stored result %j',
    async (period, result, words) => {
      counted.result = result;
      const waited = await runJson('counts', '--period', period, '--wait');
      const stored = { state: 'done', document: null, result: result ?? null };
      expect(waited).toMatchObject({ exit: 0, decision: 'admitted', ...stored });
      const key = `counts:${period}`;
      for (const [line, label] of [
        [['run', 'counts', '--period', period], 'result    '],
        [['show', key], 'result '],
        [['why', key], 'result '],
      ] as const) {
        const printed = await typed(line, environment, { jobs });
        const told = printed.out.split('\n').find((text) => text.trimStart().startsWith(label));
        expect(told?.trimEnd()).toBe(`${told?.slice(0, told.indexOf(words))}${words}`);
        expect(printed.out).not.toMatch(/document (was written|none)|totals/);
        const json = await typed([...line, '--json'], environment, { jobs });
        expect(documentOf<object>(json)).toMatchObject(stored);
      }
    },
  );

  test('twice at once, one is admitted, and both name the same owner', async () => {
    const [one, two] = await Promise.all([
      runJson('tiny', '--period', '2026-03', '--wait'),
      runJson('tiny', '--at', '2026-04-01T09:00:00Z', '--wait'),
    ]);
    expect([one.exit, two.exit]).toEqual([0, 0]);
    expect([one.decision, two.decision].filter((decision) => decision === 'admitted')).toHaveLength(1);
    expect(one.owner).toBe(two.owner);
    expect(one.document).toEqual(two.document);
  });

  test('without a time it is stamped by the database, says for which period, and closes the last that has ended', async () => {
    const printed = await run('tiny', '--json');
    const { key, run: id } = documentOf<RunDocument>(printed);
    expect(printed.err).toMatch(new RegExp(`^${key}, planned for .* UTC \\(20.*Z\\), as run ${id}\n`));
    const shown = documentOf<ShownKey>(await typed(['show', key, '--json'], environment, { jobs }));
    expect(shown.runs).toMatchObject([{ run: id, trigger: 'manual', actor: 'user:tester' }]);
  });

  test('a stated override that differs from what was settled is a conflict, and exits 4', async () => {
    expect(await runJson('tiny', '--period', '2026-02', '--set', 'color=red')).toMatchObject({
      exit: 4,
      decision: 'conflict',
    });
  });

  test('held it exits 3 and says where its request is; approved by another it goes on as the same run', async () => {
    const held = await run('tiny', '--period', '2026-04');
    expect(held.code).toBe(3);
    expect(held.out).toContain('npx onceper approvals list --key tiny:2026-04');
    const { id, digest, subject } = await requestFor('tiny:2026-04');
    expect(await typed(['approvals', 'approve', id, '--digest', digest], environment, { jobs })).toMatchObject({
      code: 3,
      err: expect.stringMatching(/^own_request: user:tester asked for it/),
    });
    const approved = await asBoss('approvals', 'approve', id, '--digest', digest, '--json');
    expect(approved).toMatchObject({ code: 0 });
    expect(documentOf(approved)).toMatchObject({
      approval: { state: 'executed' },
      workflow: `tiny-release-${subject}`,
    });
    // A run of its own before the approved one has the key would be held for itself.
    const shown = async () =>
      documentOf<ShownKey>(await typed(['show', 'tiny:2026-04', '--json'], environment, { jobs }));
    await waitFor(async () => (await shown()).owner === subject, { what: 'the approved run to be admitted' });
    expect(await runJson('tiny', '--period', '2026-04', '--wait')).toMatchObject({
      exit: 0,
      owner: subject,
      document: { id: 'doc-tiny:2026-04' },
    });
    expect(await asBoss('approvals', 'approve', id, '--digest', digest)).toMatchObject({ code: 3, out: '' });
    expect(await asBoss('approvals', 'execute', id)).toMatchObject({
      code: 3,
      err: expect.stringMatching(/^already_executed/),
    });
  });

  test('exhausted it exits 6; when the cause is mended and another approves it is admitted again and ends done', async () => {
    disk.isOnFire = true;
    const failed = await runJson('tiny', '--period', '2026-05', '--wait');
    expect(failed).toMatchObject({ exit: 6, decision: 'admitted', state: 'exhausted', document: null });
    expect(await runJson('tiny', '--period', '2026-05')).toMatchObject({ exit: 3, decision: 'held' });
    disk.isOnFire = false;
    const asked = await run('--release', failed.run, '--reason', 'the disk was replaced', '--json');
    const { approval } = documentOf<{ approval: ShownRequest }>(asked);
    expect(approval).toMatchObject({ kind: 'claim_again', plan: { keyState: 'exhausted', slices: { done: 0 } } });
    expect(asked.code).toBe(0);
    expect(await asBoss('approvals', 'approve', approval.id, '--digest', approval.digest)).toMatchObject({ code: 0 });
    await waitFor(async () => (await runJson('tiny', '--period', '2026-05')).decision === 'duplicate', {
      what: 'the approved key to be done',
    });
    expect(await runJson('tiny', '--period', '2026-05')).toMatchObject({
      owner: failed.run,
      document: { id: 'doc-tiny:2026-05' },
    });
  });

  test('every tick that was started by hand has completed: a duplicate fails nothing', async () => {
    const failed = () =>
      client.workflow.count(`WorkflowType = 'tick' and ExecutionStatus in ('Failed','Terminated','TimedOut')`);
    const completed = () => client.workflow.count(`WorkflowType = 'tick' and ExecutionStatus = 'Completed'`);
    await waitFor(async () => (await completed()).count >= 9, { what: 'the ticks to be seen as completed' });
    expect((await failed()).count).toBe(0);
  });
});
