import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { between } from '../../src/ops/both-clocks.ts';
import { explainKey } from '../../src/ops/why.ts';
import { actionByKey } from '../../src/store/actions.ts';
import { cancelAction } from '../../src/store/stop.ts';
import { createStory, type Story } from './story.ts';

let story: Story;
beforeAll(async () => {
  story = await createStory();
});
afterAll(() => story.drop());

/** All that a person reads, line by line. */
async function told(key: string): Promise<string[]> {
  const { headline, sections, next } = await explainKey(story.db, key);
  return [
    headline,
    ...sections.flatMap(({ title, lines }) => [title, ...lines]),
    ...next.flatMap(({ why, command }) => [why, command]),
  ];
}

const BOTH_CLOCKS = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\)/;

describe('why, of a key that went through a failure and a release', () => {
  let owner: string;
  beforeAll(async () => {
    const opened = await story.open('2026-01');
    owner = opened.run;
    const first = await story.claim(owner);
    await story.perform(first, 0);
    await story.fail(first, 'connection_lost');
    await story.fail(await story.claim(owner, 2), 'connection_lost');
  });

  test('says who ran it, when, for which time, and what was decided', async () => {
    const lines = await told('tiny:2026-01');
    expect(lines).toContain(`run ${owner}, the owner`);
    expect(lines).toContainEqual(
      expect.stringMatching(new RegExp(`^ {2}started by the schedule \\(schedule:tiny\\), ${BOTH_CLOCKS.source}$`)),
    );
    expect(lines).toContain('  planned for 2026-02-01 02:00:00 (2026-01-31T18:00:00Z)');
    expect(lines).toContain('  admitted: the key was free');
  });

  test('says of each attempt its fence, its release, when it began and how it ended', async () => {
    const lines = await told('tiny:2026-01');
    const at = lines.findIndex((line) => line.startsWith('attempt 1 '));
    expect(lines[at]).toBe(
      'attempt 1 (fence 1, release test) failed: connection_lost, the server closed the connection',
    );
    expect(lines[at + 1]).toMatch(new RegExp(`^ {2}began ${BOTH_CLOCKS.source}, ended .*; it finished 1 slice$`));
    expect(lines[at + 2]).toMatch(/^attempt 2 \(fence 2, .* failed/);
    expect(lines[at + 3]).toMatch(/; it finished 0 slices$/);
  });

  test('says that nothing goes on by itself, how far it came, and the one command that lets it go on', async () => {
    const { headline, takeover, next } = await explainKey(story.db, 'tiny:2026-01');
    expect(headline).toMatch(
      /^tiny:2026-01 is exhausted: .*, the last with connection_lost\. Nothing goes on by itself\.$/,
    );
    expect(takeover).toBeNull();
    expect(next.map(({ command }) => command)).toEqual([`npx onceper run --release ${owner} --reason "..."`]);
    expect(await told('tiny:2026-01')).toContain('1 of 2 slices done');
    expect(await told('tiny:2026-01')).toContain('1 pending: nothing is sent before the key is done');
  });
});

describe('why, of a key that is held by a live attempt', () => {
  test('says by whom, until when, and until when at the latest a takeover happens', async () => {
    const { run } = await story.open('2026-02');
    await story.claim(run);
    const action = await actionByKey(story.db, 'tiny:2026-02');
    const { headline, takeover } = await explainKey(story.db, 'tiny:2026-02');
    expect(headline).toBe('tiny:2026-02 is running: attempt 1 works on it under fence 1.');
    expect(takeover?.leaseUntil).toBe(action?.leaseUntil);
    // The rest of the lease, and 0.8 × the lease of 30 s for transactions in flight.
    expect(between(takeover?.leaseUntil ?? '', takeover?.atTheLatest ?? '')).toBe(24_000);
    const lines = (await told('tiny:2026-02')).join('\n');
    expect(lines).toContain(`run ${run} holds it under fence 1, by execution execution-1 in its pass 1`);
    expect(lines).toMatch(/its lease runs until .*, for (29|30) s more, and is renewed every 10 s/);
    expect(lines).toMatch(
      /the next attempt would have the key at the latest .*, in 5[34] s: the rest of the lease, and 24 s/,
    );
    expect(lines).toContain('npx onceper run tiny --period 2026-02');
  });

  test('says, when the lease has ended, since when and for how long transactions may still delay a takeover', async () => {
    await story.endLease('tiny:2026-02', 10_000);
    const lines = (await told('tiny:2026-02')).join('\n');
    expect(lines).toMatch(/^tiny:2026-02 is stalled: the lease of its last attempt has ended/);
    expect(lines).toMatch(/its lease ended .*, 10 s ago/);
    expect(lines).toMatch(/may delay a takeover by 1[34] s more, until .* \(0\.8 × the lease of 30 s\)/);
    expect(lines).toContain('npx onceper worker');
    expect(lines).toContain(
      'npx temporal schedule backfill --schedule-id tiny --start-time 2026-02-28T18:00:00Z --end-time 2026-02-28T18:00:00Z --overlap-policy AllowAll',
    );
  });

  test('says, when that is over too, that the next claim gets it at once', async () => {
    await story.endLease('tiny:2026-02', 60_000);
    const lines = (await told('tiny:2026-02')).join('\n');
    expect(lines).toContain('nothing of the old holder can be in flight any more');
  });
});

test('why, of a key that no worker has claimed, says until when its start window is open', async () => {
  const { run } = await story.open('2026-03');
  const lines = (await told('tiny:2026-03')).join('\n');
  expect(lines).toContain('tiny:2026-03 is admitted, and waits for a worker to claim it.');
  expect(lines).toContain(`run ${run} owns it, and no attempt has claimed it yet`);
  expect(lines).toMatch(/its start window is open until .*, for (29|30) s more/);
});

test('why, of a done key, shows the document, its effects, and that running it again is harmless', async () => {
  const { run } = await story.settle('2026-04');
  const { run: again } = await story.open('2026-04', { actor: 'os:ann', door: 'run' });
  const lines = (await told('tiny:2026-04')).join('\n');
  expect(lines).toMatch(/^tiny:2026-04 is done: its document was written /);
  expect(lines).toContain('document doc-tiny:2026-04');
  expect(lines).toContain('2 pending: a relay sends them');
  expect(lines).toContain(`run ${run}, the owner`);
  expect(lines).toMatch(
    new RegExp(`run ${again}, by hand \\(os:ann\\), .*: a duplicate, answered with the stored result`),
  );
  expect(lines).toContain('npx onceper relay');
});

test('why, of a key whose payouts wait for a paused counterparty, says since when, by which answer, and how it goes on', async () => {
  const waiting = await createStory();
  await waiting.settle('2026-04');
  await waiting.db.query(
    `update onceper.destination set state = 'paused', code = 'balance_insufficient', status = 402, probe_at = clock_timestamp(),
            since = clock_timestamp() - interval '1 hour'`,
  );
  const { sections, next } = await explainKey(waiting.db, 'tiny:2026-04');
  const lines = sections.flatMap((section) => section.lines);
  expect(lines).toContainEqual(
    expect.stringMatching(
      /^accounts is paused since .* \(1 h.*\) by 402 balance_insufficient, .*: they wait under their numbers/,
    ),
  );
  expect(next.map(({ command }) => command)).toContain('npx onceper destination resume accounts --reason "..."');
  await waiting.drop();
});

test('why, of a key with many duplicates, tells the first and the owner, and counts the others', async () => {
  await story.open('2026-05', { overrides: {} });
  for (let more = 0; more < 12; more += 1) await story.open('2026-05');
  const lines = await told('tiny:2026-05');
  expect(lines).toContain('and 5 later runs: npx onceper show tiny:2026-05');
});

test('why, of a cancelled key, shows the command that admits it again', async () => {
  const { run } = await story.open('2026-06');
  await cancelAction(story.db, { key: 'tiny:2026-06', actor: 'os:ann', reason: 'wrong rule', lockTimeout: 5_000 });
  const { headline, next } = await explainKey(story.db, 'tiny:2026-06');
  expect(headline).toBe('tiny:2026-06 is cancelled. Nothing goes on by itself.');
  expect(next[0]?.command).toBe(`npx onceper run --release ${run} --reason "..."`);
});

test('why, of a deferred key, points at the period before it, and of a held one at its release', async () => {
  const waiting = await createStory({
    hooks: {
      needs: 'previous',
      inspect: (_, { period }) =>
        Promise.resolve(
          period === '2026-01' ? { kind: 'held', code: 'empty', reason: 'nothing there' } : { kind: 'ready' },
        ),
    },
  });
  await waiting.open('2026-02');
  const deferred = await explainKey(waiting.db, 'tiny:2026-02');
  expect(deferred.state).toBe('deferred');
  expect(deferred.headline).toMatch(
    /^tiny:2026-02 is deferred: 2026-01 must be done first. It was last asked for .+ ago/,
  );
  expect(deferred.headline).toContain("in 10 min is asked again by a worker's check of expected periods");
  expect(deferred.next[0]?.command).toBe('npx onceper why tiny:2026-01');
  const { run } = await waiting.open('2026-01');
  const held = await explainKey(waiting.db, 'tiny:2026-01');
  expect(held.headline).toBe(
    'tiny:2026-01 is held (empty): nothing there. Nothing happens until a person releases it.',
  );
  expect(held.next[0]?.command).toBe(`npx onceper run --release ${run} --reason "..."`);
  await waiting.drop();
});

test('every command that why prints begins with npx, and those of the schedule allow all overlaps', async () => {
  for (const month of ['2026-01', '2026-02', '2026-03', '2026-04', '2026-05', '2026-06']) {
    for (const { command } of (await explainKey(story.db, `tiny:${month}`)).next) {
      expect(command).toMatch(/^npx (onceper|temporal) /);
      if (command.startsWith('npx temporal schedule')) expect(command).toMatch(/ --overlap-policy AllowAll$/);
    }
  }
});

describe('a key that the ledger does not know', () => {
  test('is refused with the nearest known ones', async () => {
    await expect(explainKey(story.db, 'tiny:2026-09')).rejects.toMatchObject({
      code: 'unknown_key',
      at: 'tiny:2026-09',
      remedy: expect.stringContaining('the nearest known keys are tiny:2026-05, tiny:2026-06'),
    });
    await expect(explainKey(story.db, 'tyni:2026-03')).rejects.toMatchObject({
      remedy: expect.stringContaining('tiny:2026-06'),
    });
  });

  test.each(['tiny', 'tiny:2026-9', 'Tiny:2026-09', 'tiny:2026-09:retry1', ''])('%j is malformed', async (key) => {
    await expect(explainKey(story.db, key)).rejects.toMatchObject({ code: 'malformed_key' });
  });

  test('of a month that does not exist is no period of its job', async () => {
    await expect(explainKey(story.db, 'tiny:2026-13')).rejects.toMatchObject({ code: 'malformed_period' });
  });
});
