import type { Field } from '../field.ts';
import { pause } from '../pause.ts';
import type { Kind } from './fault.ts';

const OTHERS = `datname = 'onceper' and pid <> pg_backend_pid() and application_name like 'onceper%'`;

async function terminate({ postgres }: Field, which: string): Promise<boolean> {
  const [row] = await postgres.query<{ ended: number }>(
    `select count(*) filter (where pg_terminate_backend(pid))::int4 as ended from pg_stat_activity where ${OTHERS} and ${which}`,
  );
  return (row?.ended ?? 0) > 0;
}

/** Lies in wait for a COMMIT on its way, and ends its backend. */
const DURING_COMMIT = `
  create function pg_temp.strike() returns int4 language plpgsql as $$
  declare victim int4;
  begin
    for n in 1 .. 1500 loop
      perform pg_stat_clear_snapshot();
      select pid into victim from pg_stat_activity where ${OTHERS} and state = 'active' and query ilike 'commit%' limit 1;
      if victim is not null then
        perform pg_terminate_backend(victim);
        return 1;
      end if;
      perform pg_sleep(0.001);
    end loop;
    return 0;
  end $$`;

async function terminateDuringCommit({ postgres }: Field): Promise<boolean> {
  const client = await postgres.connect();
  try {
    await client.query(DURING_COMMIT);
    const { rows } = await client.query<{ strike: number }>('select pg_temp.strike()');
    return rows[0]?.strike === 1;
  } finally {
    await client.end();
  }
}

/** Somebody else's session takes a lock and sits on it. */
async function hold({ postgres }: Field, lock: string, ms: number): Promise<boolean> {
  const client = await postgres.connect();
  try {
    await client.query(`set lock_timeout = '3s'`);
    await client.query('begin');
    await client.query(lock);
    await pause(ms);
    await client.query('rollback');
    return true;
  } finally {
    await client.end();
  }
}

async function readOnly({ postgres }: Field, ms: number): Promise<boolean> {
  const set = async (value: string) => {
    await postgres.query(`alter system ${value}`);
    await postgres.query('select pg_reload_conf()');
  };
  await set('set default_transaction_read_only = on');
  await pause(ms);
  await set('reset default_transaction_read_only');
  return true;
}

/** Takes whatever connections are left. */
async function takeConnections({ postgres }: Field, ms: number): Promise<boolean> {
  const taken: { end(): Promise<void> }[] = [];
  let isFull = false;
  while (!isFull) {
    const more = await Promise.allSettled(Array.from({ length: 20 }, () => postgres.connect()));
    taken.push(...more.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
    isFull = more.some((one) => one.status === 'rejected');
  }
  await pause(ms);
  await Promise.allSettled(taken.map((client) => client.end()));
  return taken.length > 0;
}

/** What befalls sessions of the database. */
export const SESSION_FAULTS: readonly Kind[] = [
  {
    name: 'idle sessions ended',
    lanes: ['sessions'],
    weight: 6,
    isShort: true,
    strike: (f) => terminate(f, `state = 'idle'`),
  },
  {
    name: 'sessions ended in a transaction',
    lanes: ['sessions'],
    weight: 8,
    isShort: true,
    strike: (f) => terminate(f, `state <> 'idle'`),
  },
  { name: 'all sessions ended', lanes: ['sessions'], weight: 6, isShort: true, strike: (f) => terminate(f, 'true') },
  {
    name: 'a session ended during COMMIT',
    lanes: ['sessions'],
    weight: 8,
    isShort: true,
    strike: terminateDuringCommit,
  },
  {
    name: 'the ledger locked by another session',
    lanes: ['sessions'],
    weight: 5,
    isShort: true,
    strike: (f, draw) => hold(f, 'lock table onceper.action in share row exclusive mode', draw.between(500, 3_000)),
  },
  {
    name: 'effects locked by another session',
    lanes: ['sessions'],
    weight: 5,
    strike: (f, draw) =>
      hold(f, 'select from onceper.outbox order by number limit 200 for update', draw.between(500, 3_000)),
  },
  {
    name: 'the end of the audit locked by another session',
    lanes: ['sessions'],
    weight: 4,
    strike: (f, draw) => hold(f, 'select from onceper.audit_head for update', draw.between(500, 2_000)),
  },
  {
    name: 'the database is read only',
    lanes: ['postgres'],
    weight: 3,
    isShort: true,
    strike: (f, draw) => readOnly(f, draw.between(500, 2_000)),
  },
  {
    name: 'no connection is left',
    lanes: ['postgres'],
    weight: 2,
    isShort: true,
    strike: (f, draw) => takeConnections(f, draw.between(500, 1_500)),
  },
];
