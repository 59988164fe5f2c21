import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { expect, test } from 'vitest';
import { createTestDatabase } from '../support/database.ts';
import { createTestNamespace } from '../support/namespace.ts';

test('each test database is a UTF-8 database of its own, of the C locale, in UTC, on PostgreSQL 18 unless another server is given', async () => {
  const first = await createTestDatabase();
  const second = await createTestDatabase();
  const client = new pg.Client({ connectionString: first.url });
  await client.connect();
  try {
    expect(first.url).not.toBe(second.url);
    const shown = await client.query(
      `select current_setting('server_encoding') as encoding, current_setting('timezone') as zone,
              current_setting('server_version_num')::int / 10000 as major, to_regclass('onceper.action') is not null as migrated,
              'a' < 'B' collate "default" as ignores_case`,
    );
    expect(shown.rows[0]).toEqual({
      encoding: 'UTF8',
      zone: expect.stringMatching(/UTC$/),
      major: process.env['DATABASE_URL'] === undefined ? 18 : expect.any(Number),
      migrated: true,
      ignores_case: false,
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
