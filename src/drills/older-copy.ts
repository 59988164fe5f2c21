import pg from 'pg';
import { connectionOf } from '../store/connection.ts';
import type { Stage } from './stage.ts';

/** A file-level copy of the stage's database by the server itself; whoever is connected to it is ended first. */
export async function copyDatabase(stage: Stage): Promise<void> {
  await onMaintenance(stage, [
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'onceper' and pid <> pg_backend_pid()`,
    `create database before template onceper`,
  ]);
}

/** Puts the copy in place of the database, under whoever works with it: what a restore from a backup does. */
export async function replaceDatabase(stage: Stage): Promise<void> {
  await onMaintenance(stage, ['drop database onceper with (force)', 'alter database before rename to onceper']);
}

async function onMaintenance(stage: Stage, statements: readonly string[]): Promise<void> {
  const url = new URL(stage.databaseUrl);
  url.pathname = '/postgres';
  const client = new pg.Client({ ...connectionOf(url.href) });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The epoch that Temporal remembers, 0 before the first look. */
export async function rememberedEpoch(stage: Stage): Promise<number> {
  const { memo } = await stage.client.workflow.getHandle('onceper-epoch').describe();
  return Number((memo?.['epoch'] as { epoch?: string } | undefined)?.epoch ?? 0);
}

/** Calls to the counterparty that this ledger knows of, before its delivery was thawed. */
export async function calledBeforeThaw(stage: Stage): Promise<number> {
  const { rows } = await stage.db.query<{ n: number }>(
    `select count(*)::int4 as n from onceper.delivery where at < (select max(at) from onceper.audit where verb = 'thaw')`,
  );
  return rows[0]?.n ?? 0;
}

/** The `kind` of a reconciliation that was printed as JSON. */
export function kindOf(json: string): string {
  return (JSON.parse(json) as { kind?: string }).kind ?? 'nothing';
}
