import { appendFileSync } from 'node:fs';
import type { Draw } from '../../../../src/jobs/settlement/sample/draw.ts';
import type { Field } from '../field.ts';
import { signalAll } from '../processes.ts';
import type { Kind } from './fault.ts';

const HELD = 6;

/** A backup is made of a server that has just died; later ones leave the first in place, which nothing had been settled in. */
async function killAndKeep(field: Field): Promise<boolean> {
  const { backups, postgres } = field;
  const name = `${backups.length >= HELD ? (backups.splice(1, 1)[0] ?? 'b') : `b${backups.length}`}`;
  await postgres.backUp(name);
  backups.push(name);
  return true;
}

/** Puts any backup in place under whoever runs. What the ledger had closed is written down, since nobody can ask it later. */
async function restore(field: Field, draw: Draw): Promise<boolean> {
  const { backups, postgres, lives } = field;
  if (backups.length === 0) await killAndKeep(field);
  const at = draw.between(0, backups.length - 1);
  const name = backups[at];
  if (name === undefined) return false;
  // Later backups are of a ledger that no longer is.
  backups.splice(at + 1);
  const client = await postgres.connect();
  try {
    // Nothing closes between this reading and the end of that ledger.
    await client.query(
      `set timezone = 'UTC'; set lock_timeout = '5s'; begin; lock table settlement.document in share row exclusive mode`,
    );
    const { rows } = await client.query(`select key, id, hash, closed_at::text as closed_at from settlement.document`);
    appendFileSync(lives, rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    await postgres.restore(name);
  } finally {
    // The server that it led to is gone.
    await client.end().catch(() => undefined);
  }
  return true;
}

async function applySchedule({ people }: Field): Promise<void> {
  for (let tries = 0; tries < 5; tries += 1) {
    if ((await people.type('alice', ['schedule', 'apply', 'settlement'])).code === 0) return;
  }
}

/** What befalls the servers. */
export const SERVER_FAULTS: readonly Kind[] = [
  { name: 'PostgreSQL killed', lanes: ['postgres'], weight: 5, isShort: true, strike: killAndKeep },
  {
    name: 'PostgreSQL shut down at once',
    lanes: ['postgres'],
    weight: 5,
    isShort: true,
    async strike({ postgres }) {
      await postgres.crash('SIGQUIT');
      return true;
    },
  },
  {
    name: 'PostgreSQL stands still',
    lanes: ['postgres'],
    weight: 3,
    async strike({ postgres }, draw) {
      await postgres.freeze(draw.between(2_000, 5_000));
      return true;
    },
  },
  {
    name: 'the database put back to an older copy',
    lanes: ['postgres'],
    weight: 3,
    when: 'early',
    isShort: true,
    strike: restore,
  },
  {
    name: 'Temporal killed',
    lanes: ['temporal'],
    weight: 4,
    isShort: true,
    async strike({ temporal }) {
      await temporal.crash();
      return true;
    },
  },
  {
    name: 'Temporal stands still',
    lanes: ['temporal'],
    weight: 3,
    async strike({ temporal }, draw) {
      signalAll([temporal.pid()], 'SIGCONT');
      await temporal.freeze(draw.between(1_000, 4_000));
      return true;
    },
  },
  {
    name: 'Temporal forgets everything',
    lanes: ['temporal'],
    weight: 2,
    async strike(field) {
      await field.temporal.erase();
      await applySchedule(field);
      return true;
    },
  },
];
