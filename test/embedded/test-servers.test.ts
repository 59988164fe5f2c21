import { Connection } from '@temporalio/client';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';

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

test('the Temporal server of the tests answers for its namespace', async () => {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  try {
    const described = await connection.workflowService.describeNamespace({ namespace: 'default' });
    expect(described.namespaceInfo?.name).toBe('default');
  } finally {
    await connection.close();
  }
});
