import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { createTestNamespace } from '../support/namespace.ts';

test('each test database is a UTF-8 database of its own on PostgreSQL 18, in UTC', async () => {
  const first = await createTestDatabase();
  const second = await createTestDatabase();
  const client = new pg.Client({ connectionString: first.url });
  await client.connect();
  try {
    expect(first.url).not.toBe(second.url);
    const shown = await client.query(
      `select current_setting('server_encoding') as encoding, current_setting('timezone') as zone,
              current_setting('server_version_num')::int / 10000 as major, current_setting('max_connections')::int as connections,
              to_regclass('onceper.action') is not null as migrated,
              (select datlocale from pg_database where datname = current_database()) as locale`,
    );
    expect(shown.rows[0]).toEqual({
      encoding: 'UTF8',
      zone: 'UTC',
      major: 18,
      connections: 200,
      migrated: true,
      locale: 'C.UTF-8',
    });
  } finally {
    await client.end();
    await first.drop();
    await second.drop();
  }
});

test('each test namespace takes workflows at once, and their ids are its own', async () => {
  const first = await createTestNamespace();
  const second = await createTestNamespace();
  const connection = await Connection.connect({ address: first.address });
  try {
    for (const { namespace } of [first, second]) {
      const { workflow } = new Client({ connection, namespace });
      const started = await workflow.start('tick', { taskQueue: 'nobody', workflowId: 'settlement:2026-09' });
      expect(started.workflowId).toBe('settlement:2026-09');
    }
  } finally {
    await connection.close();
  }
});
