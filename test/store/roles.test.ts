import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const ROLES = ['worker', 'server', 'break_glass', 'operator', 'auditor', 'reader'] as const;
/** The server and break-glass share a column. */
const COLUMN = [0, 1, 1, 2, 3, 4] as const;
const VERBS = ['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger'] as const;

/** What docs/roles.md promises of a table to a role: `select, update of state`. */
interface Cell {
  readonly table: string;
  readonly role: string;
  readonly promised: string;
}

const MATRIX: readonly Cell[] = readFileSync(join(import.meta.dirname, '../../docs/roles.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| `\w+\.\w+` \|/.test(line))
  .flatMap((line) => {
    const [table = '', ...cells] = line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim());
    return ROLES.map((role, at) => ({
      table: table.replaceAll('`', ''),
      role,
      promised: cells[COLUMN[at] ?? 0] ?? '',
    }));
  });

let database: TestDatabase;
let client: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** True where a statement that changes nothing is not refused to the role for want of a privilege. */
async function may(role: string, statement: string): Promise<boolean> {
  await client.query('begin');
  try {
    await client.query(`set local role ${role}`);
    await client.query(statement);
    return true;
  } catch (error) {
    return (error as { code?: string }).code !== '42501';
  } finally {
    await client.query('rollback');
  }
}

async function columnsOf(table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by 1`,
    [table],
  );
  return rows.map(({ name }) => name);
}

async function holds(role: string, table: string, verb: string): Promise<boolean> {
  const { rows } = await client.query<{ holds: boolean }>('select has_table_privilege($1, $2, $3) as holds', [
    role,
    table,
    verb,
  ]);
  return rows[0]?.holds ?? false;
}

/** What the role is in fact allowed: by trying it, and for single columns and what no statement tries, by asking the server. */
async function allowed(role: string, table: string): Promise<string> {
  const found: string[] = [];
  const columns = await columnsOf(table);
  const tries: Partial<Record<(typeof VERBS)[number], string>> = {
    select: `select * from ${table} limit 0`,
    insert: `insert into ${table} default values`,
    delete: `delete from ${table} where false`,
    truncate: `truncate ${table}`,
  };
  for (const verb of VERBS) {
    const statement = tries[verb];
    const isHeld = await holds(role, table, verb);
    if (statement !== undefined) expect(await may(role, statement), `${role} ${verb} ${table}`).toBe(isHeld);
    if (isHeld) found.push(verb);
    else if (verb === 'update' || verb === 'insert') {
      const { rows } = await client.query<{ name: string }>(
        `select name from unnest($3::text[]) name where has_column_privilege($1, $2, name, $4) order by 1`,
        [role, table, columns, verb],
      );
      if (rows.length > 0) found.push(`${verb} of ${rows.map(({ name }) => name).join(', ')}`);
    }
  }
  return found.length === 0 ? 'nothing' : found.join(', ');
}

test('every table of both schemas has its line in docs/roles.md, and every line has its table', async () => {
  const { rows } = await client.query<{ name: string }>(
    `select format('%s.%s', schemaname, tablename) as name from pg_tables where schemaname in ('onceper', 'settlement')`,
  );
  const described = [...new Set(MATRIX.map(({ table }) => table))];
  expect(described.length).toBeGreaterThan(20);
  expect(described.toSorted()).toEqual(rows.map(({ name }) => name).toSorted());
});

test.each(MATRIX)('the $role may $promised on $table, and nothing else', async ({ table, role, promised }) => {
  expect(await allowed(`onceper_${role}`, table)).toBe(promised);
});

describe('the owner', () => {
  const tables = [...new Set(MATRIX.map(({ table }) => table))];

  test.each(tables)('owns %s and may do everything to it', async (table) => {
    expect(await allowed('onceper_owner', table)).toBe(VERBS.join(', '));
    const { rows } = await client.query<{ owner: string }>(
      'select relowner::regrole::text as owner from pg_class where oid = $1::regclass',
      [table],
    );
    expect(rows[0]?.owner).toBe('onceper_owner');
  });
});

test('somebody in none of the groups may do nothing, nor see that the tables are there', async () => {
  const stranger = `${database.name}_stranger`;
  await client.query(`create role ${stranger}`);
  try {
    for (const table of new Set(MATRIX.map((cell) => cell.table))) {
      for (const verb of VERBS) expect(await holds(stranger, table, verb), `${verb} ${table}`).toBe(false);
      expect(await may(stranger, `select from ${table} limit 0`)).toBe(false);
    }
  } finally {
    await client.query(`drop role ${stranger}`);
  }
});

test('the one sequence is the server’s', async () => {
  const { rows } = await client.query<{ name: string; role: string }>(
    `select c.oid::regclass::text as name, r.role from pg_class c, unnest($1::text[]) as r (role)
      where c.relkind = 'S' and c.relnamespace in ('onceper'::regnamespace, 'settlement'::regnamespace)
        and has_sequence_privilege('onceper_' || r.role, c.oid, 'usage, select, update')`,
    [ROLES],
  );
  const name = 'settlement.import_id_seq';
  expect(rows).toEqual([
    { name, role: 'server' },
    { name, role: 'break_glass' },
  ]);
});

test('nobody but the owner may make or change anything in the schemas, and no group can log in or make roles', async () => {
  for (const role of ROLES) {
    for (const schema of ['onceper', 'settlement']) {
      expect(await may(`onceper_${role}`, `create table ${schema}.planted (n int)`)).toBe(false);
    }
    expect(await may(`onceper_${role}`, 'alter table onceper.audit disable trigger all')).toBe(false);
    expect(await may(`onceper_${role}`, 'set session_replication_role = replica')).toBe(false);
  }
  const { rows } = await client.query<{ n: number }>(
    `select count(*)::int4 as n from pg_roles
      where rolname = any ($1) and not (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolbypassrls)`,
    [[...ROLES, 'owner'].map((role) => `onceper_${role}`)],
  );
  expect(rows[0]?.n).toBe(7);
});
