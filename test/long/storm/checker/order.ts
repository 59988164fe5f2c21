import { existsSync, readFileSync } from 'node:fs';
import type { Client } from 'pg';
import type { Moved } from './journal.ts';
import type { Verdict } from './verdict.ts';

interface Document {
  readonly key: string;
  readonly id: string;
  readonly hash: string;
  readonly closed_at: string;
}

/** Every expected period is settled once, in one document, which is the same in every life of the ledger, and before its money moves. */
export async function checkOrder(
  client: Client,
  of: { readonly months: readonly string[]; readonly lives: string; readonly moves: ReadonlyMap<string, Moved> },
  verdict: Verdict,
): Promise<void> {
  const { rows: documents } = await client.query<Document>(
    `select key, id, hash, closed_at::text as closed_at from settlement.document where key not like '%:adj-%'`,
  );
  const { rows: actions } = await client.query<{ key: string; state: string }>(
    `select key, state from onceper.action where adj is null`,
  );
  for (const month of of.months) {
    const key = `settlement:${month}`;
    verdict.same('every expected period is done', key, 'done', actions.find((action) => action.key === key)?.state);
    verdict.same('a key has one document', key, 1, documents.filter((document) => document.key === key).length);
  }
  verdict.same('no period is settled that is not expected', 'keys', of.months.length, actions.length);
  const earlier = livesOf(of.lives);
  for (const { key, hash } of earlier) {
    const now = documents.find((document) => document.key === key)?.hash;
    verdict.same('a document that was lost is derived again, letter for letter', key, hash, now);
  }
  const firstClosed = new Map<string, number>();
  for (const { key, closed_at } of [...documents, ...earlier]) {
    // The journal's clock has milliseconds.
    const at = Date.parse(`${closed_at.replace(' ', 'T').slice(0, 23)}Z`);
    firstClosed.set(key, Math.min(at, firstClosed.get(key) ?? at));
  }
  for (const [number, { at }] of of.moves) {
    const closed = firstClosed.get(number.split(':').slice(0, 2).join(':')) ?? Number.POSITIVE_INFINITY;
    verdict.check(
      'money moves only after its document',
      closed <= at,
      () => `${number} moved ${closed - at} ms before it`,
    );
  }
}

/** Documents of ledgers that were replaced; the files' last lines are whole, since nobody dies while they are written. */
function livesOf(file: string): readonly Document[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as Document).filter(({ key }) => !key.includes(':adj-'));
}

/** Fences only grow, and what was written was written under one that was granted. */
export async function checkFences(client: Client, verdict: Verdict): Promise<void> {
  const { rows: attempts } = await client.query<{
    key: string;
    fence: string;
    before: string | null;
    outcome: string | null;
  }>(
    `select key, fence::text, lag(fence) over (partition by key order by started_at)::text as before, outcome from onceper.attempt`,
  );
  for (const { key, fence, before } of attempts) {
    verdict.check(
      'fences only grow',
      before === null || BigInt(fence) > BigInt(before),
      () => `${key}: ${fence} after ${before}`,
    );
  }
  const { rows: keys } = await client.query<{
    key: string;
    fence: string;
    granted: string;
    done: number;
    written: string;
    slices: number;
    left: number;
  }>(
    `select a.key, a.fence::text,
            (select coalesce(max(fence), 0) from onceper.attempt t where t.key = a.key)::text as granted,
            (select count(*)::int4 from onceper.attempt t where t.key = a.key and t.outcome = 'done') as done,
            (select greatest(coalesce(max(written_by_fence), 0), (select coalesce(max(fence), 0) from onceper.slice s where s.key = a.key))
               from onceper.outbox o where o.key = a.key)::text as written,
            (select count(*)::int4 from onceper.slice s where s.key = a.key) as slices,
            (select count(*)::int4 from onceper.slice s where s.key = a.key and s.done_at is null) as left
       from onceper.action a where a.adj is null and a.state = 'done'`,
  );
  for (const { key, fence, granted, done, written, left } of keys) {
    verdict.check(
      'the last grant holds the fence',
      BigInt(granted) <= BigInt(fence),
      () => `${key}: ${granted} over ${fence}`,
    );
    verdict.check('a key is closed by one attempt', done === 1, () => `${key}: ${done} attempts say that they did`);
    verdict.check(
      'what is written was granted',
      BigInt(written) <= BigInt(granted),
      () => `${key}: ${written} over ${granted}`,
    );
    verdict.check('no slice of a done key is left', left === 0, () => `${key}: ${left} slices`);
  }
  const { rows: slices } = await client.query<{ key: string; slice: number; after: string | null }>(
    `select s.key, s.slice, (select min(t.fence)::text from onceper.attempt t
              where t.key = s.key and t.fence > s.fence and t.started_at < s.done_at) as after
       from onceper.slice s where s.done_at is not null`,
  );
  for (const { key, slice, after } of slices) {
    verdict.check(
      'an earlier holder writes nothing',
      after === null,
      () => `${key}, slice ${slice}: fence ${after} was granted before`,
    );
  }
  await checkSlices(client, verdict);
}

/** What a slice wrote lies in its range, and the ranges do not overlap. */
async function checkSlices(client: Client, verdict: Verdict): Promise<void> {
  const { rows } = await client.query<{ key: string; merchant: string; slices: number }>(
    `select l.key, l.merchant, (select count(*)::int4 from onceper.slice s
               where s.key = l.key and l.merchant between s.first_subject and s.last_subject) as slices
       from (select distinct key, merchant from settlement.line where key not like '%:adj-%') l`,
  );
  for (const { key, merchant, slices } of rows) {
    verdict.check('a merchant is in one slice', slices === 1, () => `${key} ${merchant}: ${slices}`);
  }
}
