import { readJournal } from '../gateway/simulator/journal.ts';
import type { Registry } from '../jobs/registry.ts';
import { countDocuments } from '../jobs/settlement/hold-line.ts';
import type { Instant } from '../kernel/sql.ts';
import { actionByKey } from '../store/actions.ts';
import { attemptsOfKey } from '../store/attempts.ts';
import type { Database } from '../store/database.ts';
import { runsOfKey } from '../store/runs.ts';

/** What is true of a key after the demo, each figure read from where it is recorded. */
export interface DemoFacts {
  readonly ok: boolean;
  readonly key: string;
  readonly runs: number;
  readonly attempts: number;
  readonly outcomes: readonly {
    readonly number: number;
    readonly outcome: string | null;
    readonly code: string | null;
  }[];
  readonly grants: number;
  readonly duplicates: number;
  readonly documents: number;
  readonly documentId: string | null;
  readonly payable: number;
  readonly transfers: number;
  readonly transfersTwice: number;
  readonly ledger: Readonly<Record<string, string>>;
  /** The calendar's own instant that closes the key's period. */
  readonly closing: Instant;
}

/**
 * Reads the facts of a key. Transfers are counted in the gateway's own journal, not in our database. `ok` where the document
 * exists once, every payable merchant was paid once, and each control account equals its independent sum.
 */
export async function factsOf(
  db: Database,
  registry: Registry,
  about: { key: string; closing: Instant },
  journal: string,
): Promise<DemoFacts> {
  const { key } = about;
  const [action, runs, attempts, documents] = [
    await actionByKey(db, key),
    await runsOfKey(db, key),
    await attemptsOfKey(db, key),
    await countDocuments(db, key),
  ];
  const result = action?.result as { document?: { id?: string }; payouts?: number } | null | undefined;
  const { executed, twice } = executedTransfers(journal, `${key}:`);
  const gaps = await registry.get(action?.job ?? 'settlement').ledgerGaps(db);
  const ledger = Object.fromEntries(Object.entries(gaps).map(([currency, gap]) => [currency, gap.toString()]));
  const payable = result?.payouts ?? 0;
  const balanced = Object.values(gaps).every((gap) => gap === 0n);
  return {
    ok: documents === 1 && executed === payable && twice === 0 && balanced && action?.state === 'done',
    key,
    runs: runs.length,
    attempts: attempts.length,
    outcomes: attempts.map(({ number, outcome, code }) => ({ number, outcome, code })),
    grants: Number(action?.fence ?? 0n),
    duplicates: runs.filter((run) => run.decision === 'duplicate').length,
    documents,
    documentId: result?.document?.id ?? null,
    payable,
    transfers: executed,
    transfersTwice: twice,
    ledger,
    closing: about.closing,
  };
}

/** Transfers that the gateway executed under numbers with this beginning, and how many numbers it executed more than once. */
export function executedTransfers(journal: string, beginning: string): { executed: number; twice: number } {
  const times = new Map<string, number>();
  readJournal(journal, (entry) => {
    if (entry.decision !== 'executed' || !entry.number.startsWith(beginning)) return;
    times.set(entry.number, (times.get(entry.number) ?? 0) + 1);
  });
  const counts = [...times.values()];
  return { executed: counts.reduce((sum, n) => sum + n, 0), twice: counts.filter((n) => n > 1).length };
}
