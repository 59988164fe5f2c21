import { DBOS } from '@dbos-inc/dbos-sdk';
import { KnexDataSource } from '@dbos-inc/knex-datasource';
import type { About, Peer, PeerServers } from '../peer.ts';
import { atOnce, BUSINESS, CANONICAL, CONNECTIONS } from '../work.ts';

/**
 * DBOS Transact: a workflow for each item, under the item's key as its id, with one transaction of a datasource, which commits the
 * business row together with DBOS's record of the step. The datasource for knex works with 4.27.6 of the SDK, and not with 5.3.0.
 */
export const about: About = {
  name: 'DBOS Transact',
  packages: ['@dbos-inc/dbos-sdk', '@dbos-inc/knex-datasource'],
  guarantee:
    "The business row is committed with the record of its step: once. The workflow's own record and result are other transactions, before and after it, and an interrupted one is recovered.",
  settings:
    'one registered transaction a workflow, at the default isolation; system database in the same database, systemDatabasePoolSize 16; knex pool of 16; tracing off, as preset',
  again: 'the stored result of the workflow',
  documentation: [
    'https://docs.dbos.dev/typescript/tutorials/transaction-tutorial',
    'https://docs.dbos.dev/typescript/tutorials/workflow-tutorial',
    'https://docs.dbos.dev/typescript/reference/configuration',
  ],
};

/** The executor in this process; workflows are started in it directly, without a queue. */
export function createPeer(servers: PeerServers): Peer {
  const source = new KnexDataSource('bench', {
    client: 'pg',
    connection: servers.databaseUrl,
    pool: { min: 0, max: CONNECTIONS },
  });
  // knex takes `?`, each for one value; it has no way to name one twice.
  const text = BUSINESS.replace('$1', '?').replace('$2', '?');
  const pay = source.registerTransaction(
    async (key: string) => {
      await source.client.raw(text, [key, CANONICAL]);
      return { paid: '1200' };
    },
    { name: 'pay' },
  );
  const item = DBOS.registerWorkflow((key: string) => pay(key), { name: 'item' });
  const ask = async (key: string) => {
    const handle = await DBOS.startWorkflow(item, { workflowID: key })(key);
    await handle.getResult();
  };
  return {
    async open() {
      DBOS.setConfig({
        name: 'bench',
        systemDatabaseUrl: servers.databaseUrl,
        systemDatabasePoolSize: CONNECTIONS,
        logLevel: 'error',
      });
      await DBOS.launch();
    },
    perform: (keys) => atOnce(keys, ask),
    again: (keys) => atOnce(keys, ask),
    close: () => DBOS.shutdown(),
  };
}
