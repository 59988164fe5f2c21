import { describe, expect, test } from 'vitest';
import { createTinyJob } from '../support/tiny-job.ts';
import { documentOf, type ErrorDocument, NOBODY, typed } from './command-line.ts';

const NO_DATABASE = { DATABASE_URL: `postgres://onceper:hushhush@${NOBODY}/onceper`, TEMPORAL_ADDRESS: NOBODY };
const jobs = [createTinyJob(1)];

/** Every mistake ends with one line that names its place and what to do, and never with a stack. */
const MISTAKES: readonly (readonly [string, readonly string[], number, RegExp])[] = [
  ['an unknown command', ['frob'], 2, /^usage: .*'frob' \(frob\) — .*--help$/],
  ['a command that is nearly one', ['shw', 'tiny:2026-01'], 2, /^usage: .* \(shw\) — Did you mean show\?/],
  ['an unknown option', ['show', 'tiny:2026-01', '--jsn'], 2, /^usage: .* \(--jsn\) — Did you mean --json\?/],
  ['a missing argument', ['why'], 2, /^usage: missing required argument 'key' \(key\) — /],
  ['an argument too many', ['why', 'a', 'b'], 2, /^usage: too many arguments/],
  ['a missing source', ['import', 'x.csv'], 2, /^usage: .*--source/],
  ['a malformed key', ['show', 'tiny:2026-9'], 2, /^malformed_key: .* \(tiny:2026-9\) — write job:period/],
  ['an unknown job', ['periods', 'nope'], 2, /^unknown_job: .* \(nope\) — the known ones are: tiny$/],
  ['an unknown job to run', ['run', 'nope', '--period', '2026-01'], 2, /^unknown_job: .* \(nope\) — /],
  ['no job to run', ['run'], 2, /^usage: a job is missing/],
  [
    'two times for one run',
    ['run', 'tiny', '--period', '2026-01', '--at', '2026-02-01T00:00Z'],
    2,
    /^usage: .*exclude/,
  ],
  ['an override without a value', ['run', 'tiny', '--set', 'empty'], 2, /^malformed_override: .* \(--set empty\) — /],
  ['an override said twice', ['run', 'tiny', '--set', 'a=1', '--set', 'a=2'], 2, /^malformed_override: a is set twice/],
  ['a release without a reason', ['run', '--release', 'r'], 2, /^usage: .*reason \(--reason\)/],
  ['a release with a period', ['run', '--release', 'r', '--period', '2026-01', '--reason', 'x'], 2, /^usage: /],
  ['a limit of nothing', ['effects', 'tiny:2026-01', '--limit', '0'], 2, /^usage: .* \(--limit 0\) — /],
  ['an unreadable rule file', ['migrate', '--rules', '/nowhere.json'], 2, /^file_unreadable: .* \(\/nowhere.json\) — /],
  ['a rule file that is none', ['up', '--rules', '/dev/null'], 2, /^malformed_rule: .* \(\/dev\/null\) — /],
  ['a relay without a gateway', ['relay'], 2, /^gateway_unset: .* \(ONCEPER_GATEWAY_URL\) — /],
  ['webhooks without a secret', ['webhooks'], 2, /^webhook_secret_unset: .* \(ONCEPER_WEBHOOK_SECRET\) — /],
  [
    'an unknown outcome',
    ['outbox', 'resolve', 'n', '--as', 'lost', '--reason', 'x'],
    2,
    /^usage: .* \(--as lost\) — one of /,
  ],
  ['an act without a reason', ['outbox', 'retry', 'n', '--reason', ' '], 2, /^usage: .* \(--reason\) — /],
  ['a cleaning of young records', ['outbox', 'clean', '--older-than', '1h'], 2, /^usage: .* \(--older-than\) — /],
  ['a journal in no folder', ['gateway', '--port', '0', '--journal', '/nowhere/j.jsonl'], 2, /^file_unreadable: /],
  ['no database to show from', ['show', 'tiny:2026-01'], 1, /^database_unreachable: .* \(127.0.0.1:1\/onceper\) — /],
  ['no database to run with', ['run', 'tiny', '--period', '2026-01'], 1, /^database_unreachable: /],
  ['no database to migrate', ['migrate'], 1, /^database_unreachable: /],
];

describe('a mistake on the command line', () => {
  test.each(MISTAKES)('%s', async (_, line, code, pattern) => {
    const printed = await typed(line, NO_DATABASE, { jobs });
    expect(printed.err.trimEnd().split('\n')).toHaveLength(1);
    expect(printed.err.trimEnd()).toMatch(pattern);
    expect(printed.err).not.toContain('hushhush');
    expect(printed.out).toBe('');
    expect(printed.code).toBe(code);
  });

  test.each(MISTAKES)('%s, as one JSON document', async (_, line, code, pattern) => {
    const printed = await typed([...line, '--json'], NO_DATABASE, { jobs });
    const { error } = documentOf<ErrorDocument>(printed);
    expect(Object.keys(error)).toEqual(['code', 'message', 'remedy', 'at']);
    expect(pattern.source.startsWith(`^${error.code}:`)).toBe(true);
    expect(printed.code).toBe(code);
  });
});

test('a variable that this product does not have stops the command and names the likely one', async () => {
  const printed = await typed(['doctor'], { ONCEPER_GATEWAY_URI: 'http://x' });
  expect(printed.err).toMatch(/^bad_configuration: .* \(ONCEPER_GATEWAY_URI\) — did you mean ONCEPER_GATEWAY_URL\?\n$/);
  expect(printed.code).toBe(2);
});

test('a relay without a database ends at its start, instead of waiting for it', async () => {
  const printed = await typed(['relay'], { ...NO_DATABASE, ONCEPER_GATEWAY_URL: `http://${NOBODY}` });
  expect(printed.err).toMatch(/^database_unreachable: [^\n]* \(127\.0\.0\.1:1\/onceper\) — [^\n]*\n$/);
  expect(printed.code).toBe(1);
});

test('a profile of Temporal that does not exist is named', async () => {
  const printed = await typed(['doctor'], { TEMPORAL_PROFILE: 'nowhere' });
  expect(printed.err).toMatch(/^bad_configuration: .*'nowhere'.* \(TEMPORAL_PROFILE\) — /);
  expect(printed.code).toBe(2);
});

test('without a variable for it and without servers of its own the database is said to be unset', async () => {
  const printed = await typed(['show', 'tiny:2026-01'], {}, { jobs });
  expect(printed.err).toMatch(/^database_unset: .* \(DATABASE_URL\) — npx onceper up --detach/);
  expect(printed.code).toBe(1);
});

describe('help', () => {
  test('is asked for and exits 0', async () => {
    const printed = await typed(['--help']);
    expect(printed.out).toContain('Exit codes:');
    expect(printed.code).toBe(0);
  });

  test('is shown for nothing at all, which is a usage error', async () => {
    const printed = await typed([]);
    expect(printed.err).toContain('Commands:');
    expect(printed.code).toBe(2);
  });

  const NOUNS = 'up down migrate worker relay gateway import run periods show why effects doctor'.split(' ');
  test.each([...NOUNS.map((noun) => [noun]), ['schedule', 'apply'], ['schedule', 'list']])(
    'of %s %s ends with an example and offers --json',
    async (...command) => {
      const printed = await typed([...command.filter((word) => word !== undefined), '--help']);
      expect(printed.out).toMatch(/Example:\n {2}.*npx onceper/);
      expect(printed.out).toContain('--json');
      expect(printed.code).toBe(0);
    },
  );
});

test.each([
  ['an unescaped # in a password', 'postgres://u:hush#hush@127.0.0.1:5432/x', /unescaped #/],
  ['a port that is none', 'postgres://u:hush@127.0.0.1:99999/x', /99999 is no port/],
  ['a mode that trusts anybody', 'postgres://u:hush@db.example/x?sslmode=prefer', /sslmode=prefer would give/],
])('a DATABASE_URL with %s is exit 2 and names the variable', async (_, DATABASE_URL, message) => {
  const printed = await typed(['doctor'], { DATABASE_URL });
  expect(printed.err).toMatch(/^bad_configuration: DATABASE_URL: [^\n]* \(DATABASE_URL\) — [^\n]*\n$/);
  expect(printed.err).toMatch(message);
  expect(printed.err).not.toContain('hush');
  expect(printed.code).toBe(2);
});
