import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { audienceOf, knownReceivers, openReceivers } from '../../src/app/receivers.ts';
import { TEST_SECRET } from '../support/receiver.ts';
import { emptyHome, typed } from './command-line.ts';

const SECRETS = JSON.stringify({ archive: TEST_SECRET });
const BOTH = 'accounting=https://accounting.example/hooks?a=1,2  archive=http://127.0.0.1:8300';
const given = (variables: Readonly<Record<string, string>>) => loadConfig({ ONCEPER_HOME: emptyHome, ...variables });

describe('receivers', () => {
  test('are none where nothing is said, and need no secret then', () => {
    expect(audienceOf(given({}))).toEqual({ receivers: [], source: 'onceper' });
    expect(openReceivers(given({}))).toBeUndefined();
  });

  test('have names, which a worker needs, and addresses and secrets, which a relay does', () => {
    const config = given({
      ONCEPER_RECEIVERS: BOTH,
      ONCEPER_EVENT_SOURCE: 'https://payments.example/onceper',
      ONCEPER_RECEIVER_SECRETS: JSON.stringify({ accounting: [TEST_SECRET, TEST_SECRET], archive: TEST_SECRET }),
    });
    expect(audienceOf(config)).toEqual({
      receivers: ['accounting', 'archive'],
      source: 'https://payments.example/onceper',
    });
    expect(knownReceivers(config)).toEqual([
      { name: 'accounting', url: 'https://accounting.example/hooks?a=1,2', secrets: [TEST_SECRET, TEST_SECRET] },
      { name: 'archive', url: 'http://127.0.0.1:8300', secrets: [TEST_SECRET] },
    ]);
  });

  test('take their secrets from a file too', () => {
    const file = path.join(emptyHome, 'secrets.json');
    writeFileSync(file, JSON.stringify({ accounting: TEST_SECRET, another: TEST_SECRET }));
    const one = { ONCEPER_RECEIVERS: 'accounting=https://a.example', ONCEPER_RECEIVER_SECRETS: file };
    expect(knownReceivers(given(one))).toMatchObject([{ name: 'accounting', secrets: [TEST_SECRET] }]);
  });

  test.each([
    'accounting',
    'Accounting=https://a.example',
    'accounting=ftp://a.example',
    'accounting=https://user:password@a.example',
    'accounting=https://a.example accounting=https://b.example',
    '=https://a.example',
  ])('%s is no list of receivers, and stops the start by its name', (list) => {
    expect(() => given({ ONCEPER_RECEIVERS: list })).toThrow(
      expect.objectContaining({ code: 'bad_configuration', at: 'ONCEPER_RECEIVERS' }),
    );
  });

  test('are outside, or in the networks that are listed, with blanks or commas between them', async () => {
    const inside = { ONCEPER_RECEIVERS: 'archive=http://10.20.0.7/', ONCEPER_RECEIVER_SECRETS: SECRETS };
    const printed = await typed(['relay'], inside);
    expect(printed.err).toMatch(/^receiver_address: .* \(archive\) — .*ONCEPER_RECEIVER_NETWORKS/);
    expect(printed.code).toBe(2);
    const config = given({ ...inside, ONCEPER_RECEIVER_NETWORKS: '127.0.0.1, 10.20.0.0/16  fd00::/8' });
    expect(config.receivers.networks).toEqual(['127.0.0.1', '10.20.0.0/16', 'fd00::/8']);
    await openReceivers(config)?.close();
    expect(() => given({ ONCEPER_RECEIVER_NETWORKS: 'localhost' })).toThrow(
      expect.objectContaining({ code: 'bad_configuration', at: 'ONCEPER_RECEIVER_NETWORKS' }),
    );
  });

  test.each([
    ['are not set', undefined, /ONCEPER_RECEIVER_SECRETS is not set/],
    ['are no JSON', '{whsec_Zm9yZ290dGVu', /is no JSON object/],
    ['stand in no file', '/nowhere/secrets.json', /nowhere.*can’t be read/],
    ['lack one', JSON.stringify({ archive: TEST_SECRET }), /receiver accounting has no secret/],
    ['are too short', JSON.stringify({ accounting: 'whsec_Zm9yZ290dGVu' }), /accounting is not whsec_ and base64/],
    ['are three', JSON.stringify({ accounting: Array(3).fill(TEST_SECRET) }), /more than two/],
  ])('whose secrets %s stop a relay, which names them and repeats none', async (_sentence, secrets, reason) => {
    const printed = await typed(['relay'], {
      ONCEPER_RECEIVERS: 'accounting=https://a.example',
      ...(secrets === undefined ? {} : { ONCEPER_RECEIVER_SECRETS: secrets }),
    });
    expect(printed.err).toMatch(/^receiver_secrets: /);
    expect(printed.err).toMatch(reason);
    expect(printed.err).not.toContain('Zm9yZ290dGVu');
    expect(printed.code).toBe(2);
  });
});
