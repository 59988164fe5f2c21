import { type Identity, type Position, rewindReason } from '../kernel/rewind.ts';
import { appendAudit } from '../store/audit.ts';
import { workerActor } from '../store/audit-ledger.ts';
import { type Database, transaction } from '../store/database.ts';
import { freezeDelivery } from '../store/epoch.ts';

/** Thrown inside a take to roll it back: the database is not the one that this relay has seen, or lies behind it. */
export class Rewound extends Error {
  readonly reason: string;
  readonly found: Position;

  constructor(reason: string, found: Position) {
    super(reason);
    this.reason = reason;
    this.found = found;
  }
}

/** What a relay remembers of the database, in its process: who it is, and how far it had come. */
export interface Memory {
  /** Remembers what a take found. Throws Rewound where it lies behind what is remembered. */
  see(found: Position): void;
  /** Believes what was found after all: its delivery is frozen, and whoever thaws it has compared. */
  adopt(found: Position): void;
}

/** A memory that begins with what was remembered outside, or with nothing. */
export function createMemory(remembered: Identity | null): Memory {
  let known: Identity | Position | null = remembered;
  return {
    see(found) {
      const reason = known === null ? null : rewindReason(known, found);
      if (reason !== null) throw new Rewound(reason, found);
      known = found;
    },
    adopt(found) {
      known = found;
    },
  };
}

const FREEZE = { label: 'freeze', lockTimeout: 5_000, statementTimeout: 5_000 };

/** Freezes a rewound database, so that no other relay delivers from it either; the first reason stands. */
export async function freezeRewound(db: Database, reason: string, release: string): Promise<void> {
  await transaction(db, FREEZE, async (tx) => {
    if (!(await freezeDelivery(tx, reason))) return;
    const entry = { actor: workerActor(release), verb: 'freeze', job: null, key: null, run: null } as const;
    await appendAudit(tx, { ...entry, detail: { reason } });
  });
}
