import type { AuditHead } from '../kernel/audit.ts';
import type { Instant, Tx } from '../kernel/sql.ts';
import { mustHaveHead } from './audit.ts';

/** An entry as it is stored. `at` is UTC to the microsecond, exactly as it was hashed; `detail` is canonical JSON text. */
export interface StoredEntry {
  readonly seq: bigint;
  readonly at: string;
  readonly actor: string;
  readonly verb: string;
  readonly job: string | null;
  readonly key: string | null;
  readonly run: string | null;
  readonly subject: string | null;
  readonly detail: string;
  readonly previous: string;
  readonly hash: string;
}

/** Which entries are asked for; null asks for any. `from` is included, `to` is not. */
export interface AuditFilter {
  readonly job: string | null;
  readonly key: string | null;
  readonly actor: string | null;
  readonly verb: string | null;
  readonly from: Instant | null;
  readonly to: Instant | null;
}

/** The same text in every session's time zone: two servers must hash one entry to one value. */
const COLUMNS = `seq, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, actor, verb, job, key, run, subject,
  detail, previous, hash`;

/** The entries after one number, in the order of the chain. */
export async function entriesAfter(tx: Tx, seq: bigint, limit: number): Promise<StoredEntry[]> {
  const { rows } = await tx.query<StoredEntry>(
    `select ${COLUMNS} from onceper.audit where seq > $1 order by seq limit $2`,
    [seq, limit],
  );
  return rows;
}

/** One entry, or null. */
export async function entryAt(tx: Tx, seq: bigint): Promise<StoredEntry | null> {
  const { rows } = await tx.query<StoredEntry>(`select ${COLUMNS} from onceper.audit where seq = $1`, [seq]);
  return rows[0] ?? null;
}

/** The number of the entry with this hash, or null. Walks the table: for an entry that is out of its place. */
export async function seqOfHash(tx: Tx, hash: string): Promise<bigint | null> {
  const { rows } = await tx.query<{ seq: bigint }>(`select seq from onceper.audit where hash = $1 limit 1`, [hash]);
  return rows[0]?.seq ?? null;
}

/** The number of the last row, beside a head of the same snapshot: no append can have put a row beyond it. */
export async function lastSeqBeside(tx: Tx): Promise<{ readonly head: AuditHead; readonly last: bigint }> {
  const { rows } = await tx.query<AuditHead & { last: bigint }>(
    `select h.seq, h.hash, coalesce((select max(a.seq) from onceper.audit a), 0) as last from onceper.audit_head h`,
  );
  const { seq, hash, last } = mustHaveHead(rows[0]);
  return { head: { seq, hash }, last };
}

/** Entries that pass a filter, newest first, before one number where it is given. */
export async function filteredEntries(
  tx: Tx,
  filter: AuditFilter,
  page: { readonly before: bigint | null; readonly limit: number },
): Promise<StoredEntry[]> {
  const { rows } = await tx.query<StoredEntry>(
    `select ${COLUMNS} from onceper.audit
      where ($1::text is null or job = $1) and ($2::text is null or key = $2) and ($3::text is null or actor = $3)
        and ($4::text is null or verb = $4) and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
        and ($7::int8 is null or seq < $7)
      order by seq desc limit $8`,
    [filter.job, filter.key, filter.actor, filter.verb, filter.from, filter.to, page.before, page.limit],
  );
  return rows;
}

/** What was done past the process that acts for people in the last `days`; null where the session's login may not read the audit. */
export async function breakGlassUses(
  tx: Tx,
  days: number,
): Promise<{ readonly count: number; readonly last: string; readonly actors: readonly string[] } | null> {
  const allowed = await tx.query<{ may: boolean }>(`select has_table_privilege('onceper.audit', 'select') as may`);
  if (allowed.rows[0]?.may !== true) return null;
  const { rows } = await tx.query<{ count: number; last: string | null; actors: string[] | null }>(
    `select count(*)::int as count, max(at)::text as last, array_agg(distinct actor) as actors
       from onceper.audit
      where verb = 'break-glass' and at > clock_timestamp() - make_interval(days => $1)`,
    [days],
  );
  const [found] = rows;
  return { count: found?.count ?? 0, last: found?.last ?? '', actors: found?.actors ?? [] };
}
