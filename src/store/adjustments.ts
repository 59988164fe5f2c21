import type { Tx } from '../kernel/sql.ts';

/** The next number of an adjustment of a period; under the job's lock nobody else takes it before the commit. */
export async function nextAdjustment(tx: Tx, of: { readonly job: string; readonly period: string }): Promise<string> {
  const { rows } = await tx.query<{ next: string }>(
    `select (coalesce(max(adj::int4), 0) + 1)::text as next from onceper.action where job = $1 and period = $2 and adj is not null`,
    [of.job, of.period],
  );
  return rows[0]?.next ?? '1';
}

/** An adjustment's own key, done at once: it has no run, no slice and no effect. */
export async function insertAdjustment(
  tx: Tx,
  done: {
    readonly key: string;
    readonly job: string;
    readonly period: string;
    readonly adj: string;
    readonly actor: string;
    readonly ruleVersion: number;
    readonly release: string;
    readonly result: unknown;
  },
): Promise<void> {
  const { key, job, period, adj, actor, ruleVersion, release, result } = done;
  await tx.query(
    `insert into onceper.action
       (key, job, period, adj, state, owner_run, lease_until, fingerprint, overrides, rule_version, release, result, done_at)
     values ($1, $2, $3, $4, 'done', $5, clock_timestamp(), '', '{}', $6, $7, $8, clock_timestamp())`,
    [key, job, period, adj, `adjusted by ${actor}`, ruleVersion, release, JSON.stringify(result)],
  );
}
