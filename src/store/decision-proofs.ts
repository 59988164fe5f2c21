import type { Instant, Tx } from '../kernel/sql.ts';

/** A decision of a person, and what stands beside it. */
export interface ProvenDecision {
  readonly approval: string;
  readonly revision: number;
  readonly verb: 'approve' | 'reject' | 'execute';
  /** Who decided, by the proof. */
  readonly actor: string;
  /** The signed token; null until its own time is over, and where none was needed. */
  readonly token: string | null;
  /** What the login that decided is bound by nothing as, or null: `superuser`, `owner`, `break-glass`, `before` the proofs began. */
  readonly loginAs: string | null;
  /** When, by the database's clock. */
  readonly at: Instant;
}

/** Where a page of proofs ended. */
export type ProofPlace = Pick<ProvenDecision, 'approval' | 'revision' | 'verb'>;

/** The proofs behind one place, in their order. Only an auditor, the server and their like may ask. */
export async function proofsAfter(tx: Tx, place: ProofPlace | null, limit: number): Promise<ProvenDecision[]> {
  const { rows } = await tx.query<ProvenDecision>(
    `select approval, revision, verb, actor, token, login_as as "loginAs",
            to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at
       from onceper.proofs()
      where $1::text is null or (approval, revision, verb) > ($1, $2, $3)
      order by approval, revision, verb limit $4`,
    [place?.approval ?? null, place?.revision ?? 0, place?.verb ?? '', limit],
  );
  return rows;
}

/** Decisions as the requests state them that no proof of their decider stands beside; at most `limit`. */
export async function unprovenDecisions(
  tx: Tx,
  limit: number,
): Promise<(Omit<ProofPlace, 'revision'> & { readonly actor: string })[]> {
  const { rows } = await tx.query<Omit<ProofPlace, 'revision'> & { actor: string }>(
    `with proven as materialized (select approval, revision, verb, actor from onceper.proofs())
     select a.id as approval, d.verb, d.actor
       from onceper.approval a
      cross join lateral (values (case when a.state = 'rejected' then 'reject' else 'approve' end, a.decided_by),
                                 ('execute', a.executed_by)) as d (verb, actor)
      where d.actor is not null
        and not exists (select from proven p
                         where (p.approval, p.revision, p.verb, p.actor) = (a.id, a.revision, d.verb, d.actor))
      order by a.id, d.verb limit $1`,
    [limit],
  );
  return rows;
}
