import type { Tx } from '../../src/kernel/sql.ts';
import { openDatabase } from '../../src/store/database.ts';
import { performOne, servicesFor } from '../support/ledger.ts';
import { createTinyJob } from '../support/tiny-job.ts';

/**
 * A process that holds a slice of a grant open: `idle`, in one `long` statement, or `chatty` in short ones. It says `inside`
 * when it stands in the middle of its slice; the test then kills it, stops it, or lets it be.
 */
const [url = '', key = '', fence = '', how = 'idle', lease = '1000'] = process.argv.slice(2);

async function hang(tx: Tx): Promise<void> {
  process.stdout.write('inside\n');
  if (how === 'long') await tx.query('select pg_sleep(30)');
  if (how === 'chatty') for (;;) await tx.query('select pg_sleep(0.1)');
  await new Promise(() => undefined);
}

const db = openDatabase({ url, name: 'onceper worker', max: 2 });
const services = servicesFor(db, [createTinyJob(1, { id: key.split(':')[0] ?? '', perform: hang })]);
// A process must not end while its promise is pending.
const alive = setInterval(() => undefined, 60_000);
performOne(services, { key, fence }, 0, Number.parseInt(lease, 10)).catch((error: unknown) => {
  clearInterval(alive);
  process.stdout.write(`ended ${String(error)}\n`);
  process.exit(0);
});
