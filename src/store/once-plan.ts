import type { ResultTable } from './once-recall.ts';
import { fingerprint, knownResult, type SqlWork, STORED_RESULT, stepsOf, storedResult } from './once-work.ts';

/** The statement of one kind of work, the name under which servers keep its plan, and how many duplicates it meets. */
export interface OncePlan {
  readonly text: string;
  /** Undefined beyond MOST_NAMED: texts that are made anew for each item must not fill the servers' memory with plans. */
  readonly name: string | undefined;
  /** The table in which results of this work are stored. */
  readonly resultIn: ResultTable;
  /** Whether most of the last few were duplicates. */
  expectsDuplicate(): boolean;
  learn(isDuplicate: boolean): void;
}

const MOST_NAMED = 100;
/** The weight of the last item in the estimate: six in a row turn it round, one stray does not. */
const WEIGHT = 0.125;

/** Found by the object, or by its texts where a caller makes the object anew each time. */
const byObject = new WeakMap<object, { readonly work: SqlWork; readonly plan: OncePlan }>();
const byText = new Map<string, OncePlan>();

/** The plan of a work. */
export function oncePlan(work: SqlWork): OncePlan {
  const seen = byObject.get(work.steps);
  if (seen !== undefined && isAlike(seen.work, work)) return seen.plan;
  const text = statement(work);
  const plan = byText.get(text) ?? newPlan(text, resultIn(work));
  byObject.set(work.steps, { work, plan });
  return plan;
}

function isAlike(one: SqlWork, other: SqlWork): boolean {
  return one.result === other.result && one.values?.length === other.values?.length;
}

function resultIn({ result }: SqlWork): OncePlan['resultIn'] {
  return result !== undefined && 'read' in result ? 'item_result' : 'item';
}

function newPlan(text: string, table: OncePlan['resultIn']): OncePlan {
  const isNamed = byText.size < MOST_NAMED;
  let share = 0;
  const plan: OncePlan = {
    text,
    resultIn: table,
    name: isNamed ? `onceper once ${byText.size}` : undefined,
    expectsDuplicate: () => share > 0.5,
    learn: (isDuplicate) => {
      share += WEIGHT * ((isDuplicate ? 1 : 0) - share);
    },
  };
  if (isNamed) byText.set(text, plan);
  return plan;
}

/**
 * Key, work and result in one statement. Only `won` waits, at the primary key, and nothing of the item is executed before it:
 * the steps read the row that it returns. Without such a row, what was committed before this statement began is answered.
 */
function statement(work: SqlWork): string {
  const first = (work.values?.length ?? 0) + 1;
  const [key, canonical] = [`$${first}::text`, `$${first + 1}::text`];
  const [request, hash] = [`${canonical}::jsonb`, fingerprint(canonical)];
  const stored = storedResult(work);
  const members = [
    `won as (
insert into onceper.item (key, request_hash, result)
select asked.key, ${hash}, ${knownResult(work)}
  from (select ${key} as key, ${request} as request) asked
on conflict (key) do nothing
returning key, result
)`,
    `claim as (select won.key, ${request} as request from won)`,
    ...stepsOf(work),
    ...stored,
  ];
  return `with ${members.join(',\n')}
select true as won, null as differs, ${stored.length === 0 ? 'won.result' : '(select stored.result from stored)'} as result
  from won
union all
select false, case when item.request_hash <> ${hash} then encode(item.request_hash, 'hex') end, ${STORED_RESULT}
  from onceper.item
 where item.key = ${key} and not exists (select from won)`;
}

/**
 * The same for many items at once; `$n` are the work's values, then the keys and the canonical requests. The keys are inserted
 * in their order, so that two batches with common keys wait for each other one way only.
 */
export function manyStatement(work: SqlWork): string {
  const first = (work.values?.length ?? 0) + 1;
  const stored = storedResult(work);
  const members = [
    `asked as materialized (
select asked.key, asked.canonical
  from unnest($${first}::text[], $${first + 1}::text[]) as asked (key, canonical)
)`,
    `won as (
insert into onceper.item (key, request_hash, result)
select asked.key, ${fingerprint('asked.canonical')}, ${knownResult(work)}
  from (select asked.key, asked.canonical, asked.canonical::jsonb as request
          from asked order by asked.key collate "C") asked
on conflict (key) do nothing
returning key, result
)`,
    'claim as (select won.key, asked.canonical::jsonb as request from won join asked on asked.key = won.key)',
    ...stepsOf(work),
    ...stored,
  ];
  const [result, made] =
    stored.length === 0 ? ['won.result', ''] : ['stored.result', '\n  left join stored on stored.key = won.key'];
  return `with ${members.join(',\n')}
select won.key, true as won, null as differs, ${result} as result
  from won${made}
union all
${foundMany('asked')}
 where not exists (select from won where won.key = item.key)`;
}

/** What stands under the keys of a relation `(key, canonical)`. */
export function foundMany(asked: string): string {
  return `select item.key, false as won,
       case when item.request_hash <> ${fingerprint('asked.canonical')} then encode(item.request_hash, 'hex') end as differs,
       ${STORED_RESULT} as result
  from ${asked}
  join onceper.item on item.key = asked.key`;
}
