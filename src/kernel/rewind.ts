/** Who the database says it is: PostgreSQL's own identity, and our count of looks at it. */
export interface Identity {
  readonly systemIdentifier: string;
  readonly timeline: number;
  readonly epoch: string;
}

/**
 * Why the database is not the one that was remembered, or null. A new system identifier is another cluster; a new timeline
 * is a failover or a point-in-time restore, after which commits may be missing; a lower epoch is an older copy. Each freezes
 * delivery: it costs a look, and a transfer sent from a rewound ledger can cost its amount.
 */
export function rewindReason(remembered: Identity, found: Identity): string | null {
  if (remembered.systemIdentifier !== found.systemIdentifier) {
    return `another database cluster: ${found.systemIdentifier} instead of ${remembered.systemIdentifier}`;
  }
  if (remembered.timeline !== found.timeline) {
    return `timeline ${found.timeline} instead of ${remembered.timeline}: a failover or a restore, which may have lost commits`;
  }
  if (BigInt(found.epoch) < BigInt(remembered.epoch)) {
    return `epoch ${found.epoch} after ${remembered.epoch}: an older copy of the database`;
  }
  return null;
}
