import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cancelAction } from '../../src/store/stop.ts';
import { createStory, type Story } from '../ops/story.ts';
import { createTinyJob } from '../support/tiny-job.ts';
import { documentOf, type ErrorDocument, typed } from './command-line.ts';

const jobs = [createTinyJob(2)];
let story: Story;
let run: string;

beforeAll(async () => {
  story = await createStory();
  ({ run } = await story.settle('2026-01'));
  await story.claim((await story.open('2026-02')).run);
  await story.fail(await story.claim((await story.open('2026-04')).run), 'boom');
  await story.open('2026-05');
  await story.endLease('tiny:2026-05', 60_000);
  await story.open('2026-06');
  await cancelAction(story.db, { key: 'tiny:2026-06', actor: 'os:ann', reason: 'wrong rule', lockTimeout: 5_000 });
});
afterAll(() => story.drop());

const command = (...line: string[]) => typed(line, { DATABASE_URL: story.url }, { jobs });
const json = async (...line: string[]) => documentOf<Record<string, unknown>>(await command(...line, '--json'));

describe('the documents that others rely on', () => {
  test('show has every field of its shape, fences as text and instants in UTC', async () => {
    const document = await json('show', 'tiny:2026-01');
    const fields = [
      'key',
      'state',
      'fence',
      'owner',
      'leaseUntil',
      'ruleVersion',
      'release',
      'runs',
      'attempts',
      'document',
      'effects',
    ];
    expect(Object.keys(document)).toEqual(expect.arrayContaining(fields));
    expect(document).toMatchObject({
      key: 'tiny:2026-01',
      state: 'done',
      fence: '1',
      owner: run,
      effects: { pending: 2 },
    });
    expect(document['leaseUntil']).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(Object.keys((document['runs'] as object[])[0] ?? {})).toEqual(
      expect.arrayContaining(['run', 'scheduledAt', 'trigger', 'actor', 'decision']),
    );
    expect(Object.keys((document['attempts'] as object[])[0] ?? {})).toEqual(
      expect.arrayContaining(['run', 'number', 'fence', 'outcome', 'startedAt', 'endedAt', 'release']),
    );
  });

  test('why adds the explanation to what show has', async () => {
    const document = await json('why', 'tiny:2026-02');
    expect(document).toMatchObject({
      key: 'tiny:2026-02',
      state: 'running',
      headline: expect.stringContaining('is running'),
      takeover: { leaseUntil: expect.stringMatching(/Z$/), atTheLatest: expect.stringMatching(/Z$/) },
      next: expect.arrayContaining([{ why: expect.any(String), command: 'npx onceper why tiny:2026-02' }]),
    });
  });

  test('periods has the job and each period with its state and reason', async () => {
    expect(await json('periods', 'tiny', '--from', '2026-01', '--to', '2026-03')).toEqual({
      job: 'tiny',
      periods: [
        { period: '2026-01', state: 'done', reason: null },
        { period: '2026-02', state: 'running', reason: null },
        { period: '2026-03', state: 'missing', reason: expect.stringContaining('2026-03-31T18:00:00Z') },
      ],
    });
  });

  test('effects has a page, and the number behind which the next begins', async () => {
    const document = await json('effects', 'tiny:2026-01', '--limit', '1');
    expect(document).toMatchObject({
      key: 'tiny:2026-01',
      effects: [
        {
          number: 'tiny:2026-01:s-0001:GBP:payout',
          subject: 's-0001',
          currency: 'GBP',
          amount: '100',
          state: 'pending',
        },
      ],
      next: 'tiny:2026-01:s-0001:GBP:payout',
    });
    const rest = await json('effects', 'tiny:2026-01', '--after', String(document['next']));
    expect(rest).toMatchObject({ effects: [{ subject: 's-0002' }], next: null });
  });

  test('an error has its code, message, remedy and place', async () => {
    const printed = await command('why', 'tiny:2026-07', '--json');
    expect(documentOf<ErrorDocument>(printed)).toEqual({
      error: {
        code: 'unknown_key',
        message: 'no run was ever opened for tiny:2026-07',
        remedy: expect.stringContaining('tiny:2026-05, tiny:2026-06'),
        at: 'tiny:2026-07',
      },
    });
    expect(printed.code).toBe(2);
  });
});

describe('what people read', () => {
  test('amounts are decimal, and a further page is one command away', async () => {
    const { out } = await command('effects', 'tiny:2026-01', '--limit', '1');
    expect(out).toMatch(/^tiny:2026-01:s-0001:GBP:payout +s-0001 +1\.00 +GBP +pending/m);
    expect(out).toContain('more: npx onceper effects tiny:2026-01 --limit 1 --after tiny:2026-01:s-0001:GBP:payout');
  });

  test('instants are given by the job’s clock and in UTC', async () => {
    for (const noun of ['show', 'why']) {
      const { out } = await command(noun, 'tiny:2026-01');
      expect(out).toContain('Times are those of Asia/Shanghai, and in brackets UTC.');
      expect(out).toContain('2026-02-01 02:00:00 (2026-01-31T18:00:00Z)');
    }
  });

  test.each([
    ['missing', ['--from', '2026-03', '--to', '2026-03'], 6],
    ['missing behind what is done', ['--to', '2026-03'], 6],
    ['exhausted', ['--from', '2026-04', '--to', '2026-04'], 6],
    ['stalled', ['--from', '2026-05', '--to', '2026-05'], 6],
    ['cancelled', ['--from', '2026-06', '--to', '2026-06'], 6],
    ['done', ['--to', '2026-01'], 0],
    ['running', ['--to', '2026-02'], 0],
  ])('periods of which one is %s, %j, exit with %i', async (state, range, code) => {
    const printed = await command('periods', 'tiny', ...range);
    expect(printed.out).toContain(state.split(' ')[0]);
    expect(printed.code).toBe(code);
  });

  test('periods are a table with one line each', async () => {
    const { out } = await command('periods', 'tiny', '--to', '2026-02');
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ +/).slice(0, 2)),
    ).toEqual([
      ['period', 'state'],
      ['2026-01', 'done'],
      ['2026-02', 'running'],
    ]);
  });
});
