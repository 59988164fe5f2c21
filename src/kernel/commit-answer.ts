/**
 * What an error of the server in answer to COMMIT says, by its SQLSTATE. The source is PostgreSQL's `CommitTransaction` (xact.c)
 * and its appendix A: whatever may raise an ERROR (deferred constraints and triggers, the check of a serializable transaction)
 * runs before the commit record is written, so that the transaction is rolled back. After that record a session can only be ended
 * (57P01 while it waits for a replica, say) or the server fall, and the answer says nothing of what is stored.
 */
const COMMIT_ANSWERS: readonly {
  readonly states: RegExp;
  readonly means: 'rolled_back' | 'unknown';
  readonly because: string;
}[] = [
  { states: /^40003$/, means: 'unknown', because: 'its name: statement completion unknown' },
  {
    states: /^40/,
    means: 'rolled_back',
    because: 'serialization failures and deadlocks are found before the commit record',
  },
  { states: /^25P0[34]$/, means: 'unknown', because: 'a time-out that ends the session' },
  {
    states: /^(21|22|23|25|27|2D|42|44|P0)/,
    means: 'rolled_back',
    because: 'a deferred constraint or trigger refused',
  },
  { states: /^(53|54|55)/, means: 'rolled_back', because: 'a deferred trigger lacked a lock, memory or disk' },
  {
    states: /^57014$/,
    means: 'rolled_back',
    because: 'cancelled in a trigger; a wait for a replica answers with a warning',
  },
  { states: /^57P/, means: 'unknown', because: 'the session was ended, perhaps after the commit record' },
  { states: /^08/, means: 'unknown', because: 'the connection was lost' },
];

/** Whether COMMIT was answered with a rollback for certain. What is not in the table (no SQLSTATE, XX, 58) is unknown. */
export function isRolledBack(sqlState: string | null): boolean {
  return COMMIT_ANSWERS.find(({ states }) => states.test(sqlState ?? ''))?.means === 'rolled_back';
}
