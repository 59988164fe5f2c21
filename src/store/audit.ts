import canonicalize from 'canonicalize';
import { normaliseActorId } from '../kernel/actor.ts';
import type { Anchor, AuditEntry, AuditHead } from '../kernel/audit.ts';
import { OnceperError } from '../kernel/error.ts';
import type { Instant, Tx } from '../kernel/sql.ts';

/**
 * Appends an entry in the transaction of what it records, as that transaction's LAST statement: it takes the head's row, which
 * every other append then waits for, until COMMIT. The row lock, not an advisory one, because the head is read and moved under
 * it in one snapshot, and a cut tail shows against it. Number, instant and hash are the database's (migrations/0008), so that
 * any number of appends make one line. Two entries of one transaction are two calls, one after the other. Returns the new head;
 * throws OnceperError `lock_timeout` where the caller's lock_timeout ends first, and nothing of the transaction is kept.
 */
export async function appendAudit(tx: Tx, entry: AuditEntry): Promise<AuditHead> {
  const { rows } = await tx.query<AuditHead>(
    `insert into onceper.audit (actor, verb, job, key, run, subject, detail)
     values ($1, $2, $3, $4, $5, $6, $7)
     returning seq, hash`,
    [
      normaliseActorId(entry.actor),
      entry.verb,
      entry.job,
      entry.key,
      entry.run,
      entry.subject ?? null,
      canonicalize(entry.detail) ?? '{}',
    ],
  );
  return mustHaveHead(rows[0]);
}

/**
 * Why an anchor is not borne out by the audit, or null: the entry of its number is gone, or is another one. Null also where a thaw
 * has named it, which is a person's word that what lies between was lost; the whole audit is read for that, only after a fall.
 */
export async function auditFall(tx: Tx, { seq, hash }: Pick<Anchor, 'seq' | 'hash'>): Promise<string | null> {
  const { rows } = await tx.query<{ found: string | null; last: string; isGivenUp: boolean }>(
    `select (select hash from onceper.audit where seq = $1::int8) as found,
            (select seq::text from onceper.audit_head) as last,
            case when exists (select from onceper.audit where seq = $1::int8 and hash = $2) then false
                 else exists (select from onceper.audit where verb = 'thaw' and detail::jsonb ->> 'anchor' = $1 || ' ' || $2)
            end as "isGivenUp"`,
    [seq, hash],
  );
  const { found, last, isGivenUp } = mustHaveHead(rows[0]);
  if (seq === '0' || found === hash || isGivenUp) return null;
  return found === null
    ? `the audit ends at entry ${last}, and entry ${seq} was anchored outside`
    : `entry ${seq} of the audit is not the one that was anchored outside`;
}

/** The head as it stands, at an instant of the database's clock; `seq` 0 before the first entry. */
export async function auditHead(tx: Tx): Promise<AuditHead & { readonly at: Instant }> {
  const { rows } = await tx.query<AuditHead & { at: Instant }>(
    'select seq, hash, clock_timestamp() as at from onceper.audit_head',
  );
  return mustHaveHead(rows[0]);
}

/** A query's row of the head; throws OnceperError `audit_head_missing`. */
export function mustHaveHead<Head>(head: Head | undefined): Head {
  if (head !== undefined) return head;
  throw new OnceperError({
    code: 'audit_head_missing',
    message: 'onceper.audit_head has no row',
    remedy: 'npx onceper migrate makes it; it is never deleted: look for a hand that did',
  });
}
