/** Who the database says it is: PostgreSQL's own identity, and our count of looks at it. */
export interface Identity {
  readonly systemIdentifier: string;
  readonly timeline: number;
  readonly epoch: string;
}

/** An identity, and how far the write-ahead log was on the disk: a byte position as decimal text, which only grows. */
export interface Position extends Identity {
  readonly wal: string;
}

/**
 * Why the database is not the one that was remembered, or null. A new system identifier is another cluster; a new timeline
 * is a failover or a point-in-time restore, after which commits may be missing; a lower epoch is an older copy, and so is a
 * write-ahead log that ends earlier, where both sides know where it ended. Each freezes
 * delivery: it costs a look, and a transfer sent from a rewound ledger can cost its amount.
 */
export function rewindReason(
  remembered: Identity & Partial<Position>,
  found: Identity & Partial<Position>,
): string | null {
  if (remembered.systemIdentifier !== found.systemIdentifier) {
    return `another database cluster: ${found.systemIdentifier} instead of ${remembered.systemIdentifier}`;
  }
  if (remembered.timeline !== found.timeline) {
    return `timeline ${found.timeline} instead of ${remembered.timeline}: a failover or a restore, which may have lost commits`;
  }
  if (BigInt(found.epoch) < BigInt(remembered.epoch)) {
    return `epoch ${found.epoch} after ${remembered.epoch}: an older copy of the database`;
  }
  if (remembered.wal !== undefined && found.wal !== undefined && BigInt(found.wal) < BigInt(remembered.wal)) {
    return `a write-ahead log of ${found.wal} bytes after one of ${remembered.wal}: an older copy of the database`;
  }
  return null;
}
