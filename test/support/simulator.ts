import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { JournalEntry } from '../../src/gateway/simulator/journal.ts';
import type { StatedSettings } from '../../src/gateway/simulator/settings.ts';
import { type Simulator, startSimulator } from '../../src/gateway/simulator/simulator.ts';

/** The counterparties of one test file: each test gets a journal of its own. */
export interface TestBank {
  readonly journal: string;
  /** Starts a simulator on the test's journal; it is stopped after the test. */
  start(settings?: StatedSettings): Promise<Simulator>;
  /** The journal as it is on the disk. */
  entries(): JournalEntry[];
  /** How many transfers each number has made, by the journal. */
  executed(): Map<string, number>;
}

export function useTestBank(): TestBank {
  let folder = '';
  let started: Simulator[] = [];
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'onceper-bank-'));
    started = [];
  });
  afterEach(async () => {
    for (const simulator of started) await simulator.stop();
    rmSync(folder, { recursive: true });
  });
  const bank: TestBank = {
    get journal() {
      return path.join(folder, 'journal.jsonl');
    },
    async start(settings = {}) {
      const simulator = await startSimulator({ port: 0, journal: bank.journal, settings });
      started.push(simulator);
      return simulator;
    },
    entries() {
      const lines = readFileSync(bank.journal, 'utf8').split('\n').filter(Boolean);
      return lines.map((line) => JSON.parse(line) as JournalEntry);
    },
    executed() {
      const times = new Map<string, number>();
      for (const { number, decision } of bank.entries()) {
        if (decision === 'executed') times.set(number, (times.get(number) ?? 0) + 1);
      }
      return times;
    },
  };
  return bank;
}
