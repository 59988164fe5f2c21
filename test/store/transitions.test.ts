import pg from 'pg';
import { expect, test } from 'vitest';
import { STORED_LIVES } from '../../src/kernel/transitions.ts';
import { createTestDatabase } from '../support/database.ts';

test('the database guards the lives that the code lists, no transition more and none less', async () => {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const { rows } = await client.query<{ line: string }>(
    `select machine || ' ' || before || ' ' || after as line from onceper.transition`,
  );
  await client.end();
  await database.drop();
  const listed = STORED_LIVES.flatMap(({ machine, born, life }) => [
    ...born.map((after) => `${machine} none ${after}`),
    ...Object.entries(life).flatMap(([before, afters]) =>
      afters.filter((after) => after !== before).map((after) => `${machine} ${before} ${after}`),
    ),
  ]);
  expect(rows.map(({ line }) => line).toSorted()).toEqual(listed.toSorted());
});
