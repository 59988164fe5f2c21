/**
 * What every contestant does for an item, whoever it is: an idempotency record, a business row and an outgoing row. Imported by the
 * peers' own processes too, so it needs no package.
 */

/** How many items are asked for at a time, and how many are worked on at a time. */
export const CONNECTIONS = 16;

/** What each item asks for, as an object and as its canonical text. */
export const REQUEST = { account: 'acc-1', amount: '1200' };
export const CANONICAL = '{"account":"acc-1","amount":"1200"}';

export const TABLES = `
create table pay (key text collate "C" primary key, account text not null, amount bigint not null);
create table send (number bigint generated always as identity primary key, key text not null, body jsonb not null);
create table floor_item (key text collate "C" primary key, request_hash bytea not null, result jsonb,
  done_at timestamptz not null default clock_timestamp())`;

/**
 * The best single statement by hand: `$1` is the key, `$2` the canonical request. Asked again it writes nothing. It is the floor, and
 * the handler of every peer whose own record isn't committed with the business row.
 */
export const FLOOR = `with won as (
  insert into floor_item (key, request_hash, result)
  values ($1, sha256(convert_to($2, 'UTF8')), jsonb_build_object('paid', ($2::text)::jsonb -> 'amount'))
  on conflict (key) do nothing returning key),
paid as (insert into pay (key, account, amount)
  select key, ($2::text)::jsonb ->> 'account', (($2::text)::jsonb ->> 'amount')::bigint from won),
sent as (insert into send (key, body) select key, ($2::text)::jsonb from won)
select key from won`;

/** The business and the outgoing row alone, for a peer that commits its own record of the item with them. `$1` is the key, `$2` the canonical request. */
export const BUSINESS = `with item (key, request) as (values ($1::text, ($2::text)::jsonb)),
paid as (insert into pay (key, account, amount)
  select key, request ->> 'account', (request ->> 'amount')::bigint from item)
insert into send (key, body) select key, request from item`;

/** Keys of one length whatever the round: longer keys would be more WAL. */
export function keysOf(round: string, items: number): string[] {
  return Array.from({ length: items }, (_, at) => `pay:${round}:m-${String(at).padStart(8, '0')}`);
}

/** Asks for every key, sixteen at a time; each asks for its next when it has its answer. */
export async function atOnce(keys: readonly string[], ask: (key: string) => Promise<unknown>): Promise<void> {
  let next = 0;
  const loop = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) await ask(key);
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, loop));
}
