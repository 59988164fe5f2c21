import type { Client } from '@temporalio/client';
import type { Registry } from '../jobs/registry.ts';
import type { Database } from '../store/database.ts';
import type { MigrationStanding } from '../store/migrate.ts';
import { type Check, checked } from './check.ts';
import { checkBreakGlass } from './doctor-break-glass.ts';
import { checkAnnounced, checkStranded } from './doctor-jobs.ts';
import { checkDatabase, checkLedger, migrationCheck } from './doctor-ledger.ts';
import { checkRetention, checkSchedules, checkTemporal, checkZones, type DeliveryHorizons } from './doctor-temporal.ts';

export type { Check } from './check.ts';

/** What doctor looks at; whatever connects may throw, and that becomes a row. */
export interface Patient {
  readonly registry: Registry;
  readonly taskQueue: string;
  /** How long deliveries and webhooks may still concern a key. */
  readonly delivery: DeliveryHorizons;
  readonly openDatabase: () => Database;
  readonly connectTemporal: () => Promise<Client>;
  readonly migrationStanding: () => Promise<MigrationStanding>;
  /** Throws where the counterparty's terms leave no moment for a safe re-send. */
  readonly checkGateway: () => Check;
  /** Throws where the receivers that are configured can't be told with the secrets that are. */
  readonly checkReceivers: () => Check;
}

/**
 * Looks at everything that a settlement needs, changes nothing, and always comes to an end with all rows: a fault in one
 * place is that place's row.
 */
export async function examine(patient: Patient): Promise<Check[]> {
  const database = await reach('database', async () => {
    const db = patient.openDatabase();
    try {
      return { server: db, row: await checkDatabase(db) };
    } catch (error) {
      await db.close();
      throw error;
    }
  });
  const temporal = await reach('temporal', async () => ({ server: await patient.connectTemporal(), row: null }));
  const rows = [...database.rows, ...temporal.rows];
  rows.push(...(await checked('gateway', async () => patient.checkGateway())));
  rows.push(...(await checked('receivers', async () => patient.checkReceivers())));
  try {
    rows.push(...(await examineServers(patient, database.server, temporal.server)));
  } finally {
    await database.server?.close();
    await temporal.server?.connection.close();
  }
  return rows;
}

async function examineServers(patient: Patient, db: Database | null, client: Client | null): Promise<Check[]> {
  const { registry, taskQueue } = patient;
  const rows: Check[] = [];
  let isMigrated = false;
  if (db !== null) {
    const migrations = await checked('migrations', async () => migrationCheck(await patient.migrationStanding()));
    isMigrated = migrations.every(({ state }) => state === 'ok');
    rows.push(...migrations);
  }
  if (client !== null) rows.push(...(await checkTemporal(client, taskQueue)));
  if (db !== null && isMigrated && client !== null) {
    rows.push(...(await checkSchedules(db, client, { registry, taskQueue })));
    rows.push(...(await checked('jobs of workers', () => checkAnnounced(db, client, taskQueue))));
    rows.push(
      ...(await checked('retention', () => checkRetention(db, client, { registry, delivery: patient.delivery }))),
    );
    rows.push(...(await checked('time zones', () => checkZones(db, client, registry))));
  }
  if (db !== null && isMigrated) {
    rows.push(...(await checked('waiting runs', () => checkStranded(db))));
    rows.push(...(await checkLedger(db, registry)));
    rows.push(...(await checked('break_glass', () => checkBreakGlass(db))));
  }
  return rows;
}

/** The row of a server and, where it answers, the server. Where it does not, that row is the one that decides the exit code. */
async function reach<S>(
  check: string,
  connect: () => Promise<{ server: S; row: Check | null }>,
): Promise<{ server: S | null; rows: readonly Check[] }> {
  let server: S | null = null;
  const rows = await checked(check, async () => {
    const reached = await connect();
    server = reached.server;
    return reached.row === null ? [] : reached.row;
  });
  return { server, rows: rows.map((row) => ({ ...row, isServer: server === null })) };
}
