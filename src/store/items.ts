/** What the package exports for jobs whose unit is one item (docs/once.md). */
export type { Json } from '../kernel/json.ts';
export type { Tx } from '../kernel/sql.ts';
export { asTx, type Database, openDatabase, transaction } from './database.ts';
export { type FunctionWork, type ItemOutcome, once } from './once.ts';
export { onceMany } from './once-many.ts';
export type { Item, SqlWork } from './once-work.ts';
