import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/app/config.ts';
import { openGateway } from '../../src/app/gateway.ts';
import type { Gateway } from '../../src/gateway/port.ts';
import { emptyHome, NOBODY, typed } from './command-line.ts';

const hasOpenssl = spawnSync('openssl', ['version']).status === 0;
const folder = mkdtempSync(path.join(tmpdir(), 'onceper-tls-'));
const at = (name: string) => path.join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));

function openssl(...args: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
}

/** Makes `name.pem` and `name.key.pem`, signed by `ca`, or by itself. */
function certify(name: string, ca: string | null, extension: string): void {
  const signer = ca === null ? [] : ['-CA', `${ca}.pem`, '-CAkey', `${ca}.key.pem`];
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key.pem`];
  openssl(
    'req',
    '-x509',
    ...key,
    '-out',
    `${name}.pem`,
    '-subj',
    `/CN=${name}`,
    '-days',
    '2',
    '-addext',
    extension,
    ...signer,
  );
}

let server: Server;
let seen: { readonly peer: unknown; readonly authorization: string | undefined }[] = [];
const opened: Gateway[] = [];

beforeAll(async () => {
  if (!hasOpenssl) return;
  certify('ours', null, 'basicConstraints=critical,CA:TRUE');
  certify('strange', null, 'basicConstraints=critical,CA:TRUE');
  certify('bank', 'ours', 'subjectAltName=IP:127.0.0.1');
  certify('other', 'ours', 'subjectAltName=DNS:other.example');
  certify('client', 'ours', 'extendedKeyUsage=clientAuth');
  const [cert, key, ca] = ['bank.pem', 'bank.key.pem', 'ours.pem'].map((name) => readFileSync(at(name), 'utf8'));
  server = createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true }, (request, response) => {
    const { authorization } = request.headers;
    seen.push({ peer: (request.socket as TLSSocket).getPeerCertificate().subject.CN, authorization });
    const isKnown = authorization === `Bearer ${readFileSync(at('token'), 'utf8').trim()}`;
    response.writeHead(isKnown ? 200 : 401).end('{"data":[]}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => server?.close());
afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway.close();
  seen = [];
});

const TOKEN = 'tok_4f0a.secret-1';
const CLIENT = { ONCEPER_GATEWAY_CERT_FILE: at('client.pem'), ONCEPER_GATEWAY_KEY_FILE: at('client.key.pem') };
const CA = { ONCEPER_GATEWAY_CA_FILE: at('ours.pem') };
const WITH_TOKEN = { ONCEPER_GATEWAY_TOKEN_FILE: at('token') };

function gatewayWith(given: Readonly<Record<string, string>>): Gateway {
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = loadConfig({ ONCEPER_HOME: emptyHome, ONCEPER_GATEWAY_URL: url, ...given });
  const { gateway } = openGateway(config);
  opened.push(gateway);
  return gateway;
}

/** Puts another file in the place of the token's, as whoever renews it does. */
function writeToken(text: string): void {
  writeFileSync(at('token.new'), text);
  renameSync(at('token.new'), at('token'));
}

describe.skipIf(!hasOpenssl)('over TLS with a CA of its own (needs openssl)', () => {
  test('a counterparty is shown our certificate and token, and is believed by its CA', async () => {
    writeToken(`${TOKEN}\n`);
    const gateway = gatewayWith({ ...CLIENT, ...CA, ...WITH_TOKEN });
    expect(await gateway.lookUp('n')).toEqual({ kind: 'not_found', status: 200 });
    expect(seen).toEqual([{ peer: 'client', authorization: `Bearer ${TOKEN}` }]);
  });

  test('a token that is replaced is sent from the next call on, and while there is none nothing is sent', async () => {
    writeToken(TOKEN);
    const gateway = gatewayWith({ ...CLIENT, ...CA, ...WITH_TOKEN });
    await gateway.lookUp('n');
    writeToken('another.token');
    expect(await gateway.lookUp('n')).toEqual({ kind: 'not_found', status: 200 });
    rmSync(at('token'));
    expect(await gateway.send('n', '{}')).toEqual({ kind: 'unsent', code: 'gateway_token' });
    expect(await gateway.lookUp('n')).toEqual({ kind: 'unknown', code: 'gateway_token', status: null });
    writeToken('');
    expect(await gateway.send('n', '{}')).toEqual({ kind: 'unsent', code: 'gateway_token' });
    writeToken(TOKEN);
    expect(await gateway.lookUp('n')).toEqual({ kind: 'not_found', status: 200 });
    expect(seen.map(({ authorization }) => authorization)).toEqual(
      [TOKEN, 'another.token', TOKEN].map((token) => `Bearer ${token}`),
    );
  });

  test.each([
    ['of an unknown CA', { ONCEPER_GATEWAY_CA_FILE: at('strange.pem') }, 'self_signed_cert_in_chain'],
    ['that the system’s CAs do not know', {}, 'self_signed_cert_in_chain'],
  ])('a counterparty %s is sent nothing, whatever NODE_TLS_REJECT_UNAUTHORIZED says', async (_, ca, code) => {
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      const answer = await gatewayWith({ ...CLIENT, ...ca }).send('n', '{}');
      expect(answer).toEqual({ kind: 'unsent', code });
      expect(seen).toEqual([]);
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    }
  });

  test('a counterparty whose certificate names another host is sent nothing', async () => {
    const pem = (name: string) => readFileSync(at(name), 'utf8');
    server.setSecureContext({ cert: pem('other.pem'), key: pem('other.key.pem'), ca: pem('ours.pem') });
    const answer = await gatewayWith({ ...CLIENT, ...CA }).send('n', '{}');
    server.setSecureContext({ cert: pem('bank.pem'), key: pem('bank.key.pem'), ca: pem('ours.pem') });
    expect(answer).toEqual({ kind: 'unsent', code: 'err_tls_cert_altname_invalid' });
    expect(seen).toEqual([]);
  });

  test('a counterparty that demands a certificate hears nothing from whoever has none', async () => {
    expect(await gatewayWith(CA).send('n', '{}')).toMatchObject({
      kind: expect.stringMatching(/unknown|unsent/) as string,
    });
    expect(seen).toEqual([]);
  });

  test.each([
    ['a certificate without its key', { ONCEPER_GATEWAY_CERT_FILE: at('client.pem') }, 'ONCEPER_GATEWAY_KEY_FILE'],
    ['a key without its certificate', { ONCEPER_GATEWAY_KEY_FILE: at('client.key.pem') }, 'ONCEPER_GATEWAY_CERT_FILE'],
    ['another’s key', { ...CLIENT, ONCEPER_GATEWAY_KEY_FILE: at('other.key.pem') }, 'ONCEPER_GATEWAY_KEY_FILE'],
    [
      'a key for a certificate',
      { ...CLIENT, ONCEPER_GATEWAY_CERT_FILE: at('client.key.pem') },
      'ONCEPER_GATEWAY_CERT_FILE',
    ],
    ['a CA that is none', { ONCEPER_GATEWAY_CA_FILE: at('client.key.pem') }, 'ONCEPER_GATEWAY_CA_FILE'],
  ])('%s stops the start with exit code 2, names the variable and repeats no key', async (_, given, variable) => {
    const printed = await typed(['relay'], { ONCEPER_GATEWAY_URL: `https://${NOBODY}`, ...given });
    expect(printed.err).toMatch(new RegExp(`^gateway_credentials: .* \\(${variable}\\) — `));
    expect(printed.err).not.toContain(readFileSync(at('client.key.pem'), 'utf8').slice(40, 80));
    expect(printed.code).toBe(2);
  });
});

describe('a relay does not start, and exits 2 naming the variable, when', () => {
  const REMOTE = 'http://bank.example';
  const nowhere = at('nowhere');
  writeFileSync(at('two'), 'two tokens\n');
  test.each([
    ['plain http leads to another machine', { ONCEPER_GATEWAY_URL: REMOTE }, 'ONCEPER_GATEWAY_URL'],
    ['plain http is written in capitals', { ONCEPER_GATEWAY_URL: 'HTTP://bank.example' }, 'ONCEPER_GATEWAY_URL'],
    [
      'plain http leads to a name that only looks like ours',
      { ONCEPER_GATEWAY_URL: 'http://127.0.0.1.nip.example' },
      'ONCEPER_GATEWAY_URL',
    ],
    [
      'certificates are named for plain http',
      { ONCEPER_GATEWAY_URL: `http://${NOBODY}`, ONCEPER_GATEWAY_CA_FILE: nowhere },
      'ONCEPER_GATEWAY_CA_FILE',
    ],
    [
      'the token’s file is not there',
      { ONCEPER_GATEWAY_URL: `https://${NOBODY}`, ONCEPER_GATEWAY_TOKEN_FILE: nowhere },
      'ONCEPER_GATEWAY_TOKEN_FILE',
    ],
    [
      'the token’s file holds no token',
      { ONCEPER_GATEWAY_URL: `https://${NOBODY}`, ONCEPER_GATEWAY_TOKEN_FILE: at('two') },
      'ONCEPER_GATEWAY_TOKEN_FILE',
    ],
    [
      'the certificate’s file is not there',
      {
        ONCEPER_GATEWAY_URL: `https://${NOBODY}`,
        ONCEPER_GATEWAY_CERT_FILE: nowhere,
        ONCEPER_GATEWAY_KEY_FILE: nowhere,
      },
      'ONCEPER_GATEWAY_CERT_FILE',
    ],
    [
      'a token is given for Stripe',
      { ONCEPER_GATEWAY: 'stripe', ONCEPER_STRIPE_KEY: 'sk_test', ONCEPER_GATEWAY_TOKEN_FILE: nowhere },
      'ONCEPER_GATEWAY_TOKEN_FILE',
    ],
  ] as const)('%s', async (_, given, variable) => {
    const printed = await typed(['relay'], given);
    expect(printed.err).toMatch(new RegExp(`^gateway_(credentials|url): .* \\(${variable}\\) — `));
    expect(printed.err).not.toContain('two tokens');
    expect(printed.code).toBe(2);
  });

  test('not when that is said to be meant', () => {
    const given = { ONCEPER_HOME: emptyHome, ONCEPER_GATEWAY_URL: REMOTE, ONCEPER_GATEWAY_PLAIN_HTTP: 'anywhere' };
    opened.push(openGateway(loadConfig(given)).gateway);
  });
});
