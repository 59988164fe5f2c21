import { normaliseActorId } from '../kernel/actor.ts';
import type { Instant, Tx } from '../kernel/sql.ts';

/** Who asks for a run, and what they state, under the id that the run will have. */
export interface Intent {
  readonly startId: string;
  readonly job: string;
  readonly scheduledAt: Instant;
  readonly actor: string;
  readonly overrides: Readonly<Record<string, string>>;
}

/** Writes an intent, before Temporal is told to start its tick; written again under one start id the first one stands. */
export async function writeIntent(tx: Tx, intent: Intent): Promise<void> {
  const { startId, job, scheduledAt, actor, overrides } = intent;
  await tx.query(
    `insert into onceper.intent (start_id, job, scheduled_at, actor, overrides)
     values ($1, $2, $3, $4, $5)
     on conflict (start_id) do nothing`,
    [startId, job, scheduledAt, normaliseActorId(actor), JSON.stringify(overrides)],
  );
}

/** What the ledger knows of a start before its run is opened: somebody's intent, or a period of an approved backfill. */
export type KnownStart = Omit<Intent, 'startId'> & { readonly door: 'run' | 'backfill' };

/** The start of a job's run as the ledger has it, or null where nobody wrote one down. */
export async function knownStart(tx: Tx, startId: string, job: string): Promise<KnownStart | null> {
  const { rows } = await tx.query<KnownStart>(
    `select 'run' as door, job, scheduled_at as "scheduledAt", actor, overrides
       from onceper.intent where start_id = $1 and job = $2
     union all
     select 'backfill', b.job, p.scheduled_at, b.actor, '{}'
       from onceper.backfill_period p join onceper.backfill b on b.id = p.backfill
      where p.start_id = $1 and b.job = $2`,
    [startId, job],
  );
  return rows[0] ?? null;
}
