import { createHash } from 'node:crypto';
import type { Client } from 'pg';
import type { Verdict } from './verdict.ts';

interface Entry {
  readonly seq: string;
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

/** JSON with its members in the order of their names, and no blanks. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

/** The audit's chain, computed again, and that each grant and close is in it once. */
export async function checkAudit(client: Client, verdict: Verdict): Promise<void> {
  const { rows } = await client.query<Entry>(
    `select seq::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at, actor, verb, job, key, run, subject,
            detail, previous, hash from onceper.audit order by onceper.audit.seq`,
  );
  let previous = '0'.repeat(64);
  let last = 0n;
  for (const { hash, detail, ...entry } of rows) {
    const own = createHash('sha256')
      .update(canonical({ ...entry, detail: JSON.parse(detail) as unknown }))
      .digest('hex');
    const holds = own === hash && entry.previous === previous && BigInt(entry.seq) === last + 1n;
    verdict.check('the audit’s chain is whole', holds, () => `entry ${entry.seq} (${entry.verb} ${entry.key ?? ''})`);
    previous = hash;
    last = BigInt(entry.seq);
  }
  const { rows: head } = await client.query<{ seq: string; hash: string }>(
    `select seq::text, hash from onceper.audit_head`,
  );
  verdict.same('the audit ends at its head', 'head', `${last} ${previous}`, `${head[0]?.seq} ${head[0]?.hash}`);
  const { rows: keys } = await client.query<{ key: string; closes: number; grants: number; attempts: number }>(
    `select a.key, count(*) filter (where u.verb = 'close')::int4 as closes, count(*) filter (where u.verb = 'grant')::int4 as grants,
            (select count(*)::int4 from onceper.attempt t where t.key = a.key) as attempts
       from onceper.action a left join onceper.audit u on u.key = a.key where a.adj is null and a.state = 'done' group by a.key`,
  );
  for (const { key, closes, grants, attempts } of keys) {
    verdict.same('a key is closed once in the audit', key, 1, closes);
    verdict.same('every grant is in the audit', key, attempts, grants);
  }
}

/** Nobody decides on what they asked for; what was executed was approved, once; what people did has its request. */
export async function checkPeople(client: Client, verdict: Verdict): Promise<void> {
  const { rows } = await client.query<
    Record<'id' | 'kind' | 'state' | 'requested_by' | 'edited_by' | 'decided_by', string | null> & {
      executions: number;
    }
  >(
    `select p.id, p.kind, p.state, p.requested_by, p.edited_by, p.decided_by,
            (select count(*)::int4 from onceper.audit u where u.verb = 'execute' and u.subject = p.id) as executions
       from onceper.approval p`,
  );
  for (const approval of rows) {
    const { id, state, decided_by: decided, executions } = approval;
    const isOther =
      state === 'rejected' || decided === null || (decided !== approval.requested_by && decided !== approval.edited_by);
    verdict.check('nobody approves what they asked for', isOther, () => `${id} by ${decided}`);
    verdict.same('an approval is executed once, or not', `${id} (${state})`, state === 'executed' ? 1 : 0, executions);
  }
  const executed = (kind: string) => rows.filter((row) => row.kind === kind && row.state === 'executed').length;
  const { rows: acts } = await client.query<{ releases: number; adjustments: number; backfills: number }>(
    `select (select count(*)::int4 from settlement.assigned_posting where kind = 'release') as releases,
            (select count(distinct key)::int4 from settlement.assigned_posting where kind = 'manual') as adjustments,
            (select count(*)::int4 from onceper.backfill) as backfills`,
  );
  verdict.same('what people did has its request', 'releases', executed('release_hold'), acts[0]?.releases);
  verdict.same('what people did has its request', 'adjustments', executed('adjustment'), acts[0]?.adjustments);
  verdict.same('what people did has its request', 'backfills', executed('backfill'), acts[0]?.backfills);
}

/** A start that nobody wrote down in the ledger is Temporal's: the name and the overrides that it claims are not believed. */
export async function checkRawStarts(client: Client, verdict: Verdict): Promise<void> {
  const { rows } = await client.query<{ start_id: string; actor: string; overrides: string }>(
    `select start_id, actor, overrides::text as overrides from onceper.run where start_id like 'raw-%'`,
  );
  for (const { start_id: id, actor, overrides } of rows) {
    verdict.same('a raw start is nobody’s and states nothing', id, 'temporal {}', `${actor} ${overrides}`);
  }
}
