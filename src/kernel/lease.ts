/** The times that belong to a lease, all derived from its length in one place. Milliseconds. */
export interface LeaseTimes {
  readonly lease: number;
  readonly renewEvery: number;
  readonly transactionTimeout: number;
  readonly statementTimeout: number;
  readonly idleInTransactionTimeout: number;
  readonly connectionCheckInterval: number;
  readonly claimLockTimeout: number;
}

/**
 * Times for a lease of `lease` ms. They bound a takeover: a holder's transaction can outlive its lease by
 * transactionTimeout at most, so the next grant waits for the rest of the lease + 0.8 × lease, and the claim's own lock
 * time-out lies above that. Measured: with idle and statement time-outs alone a chatty holder keeps a takeover off for ever.
 */
export function leaseTimes(lease: number): LeaseTimes {
  const part = (share: number) => Math.max(1, Math.round(lease * share));
  return {
    lease,
    renewEvery: part(1 / 3),
    transactionTimeout: part(0.8),
    statementTimeout: part(0.5),
    idleInTransactionTimeout: part(0.5),
    connectionCheckInterval: part(0.1),
    claimLockTimeout: part(0.8) + 1_000,
  };
}
