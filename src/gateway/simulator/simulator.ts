import { setMaxListeners } from 'node:events';
import { createServer, type Server } from 'node:http';
import { OnceperError } from '../../kernel/error.ts';
import { type Bank, createBank } from './bank.ts';
import { createHerald } from './herald.ts';
import { type JournalEntry, openJournal, readJournal } from './journal.ts';
import { handleRequest } from './requests.ts';
import { parseSettings, type SimulatorSettings, type StatedSettings } from './settings.ts';
import { createTeller, type Tally } from './teller.ts';

export interface SimulatorOptions {
  /** 0 takes a free port. */
  readonly port: number;
  /** The journal's file; what it holds already is remembered. */
  readonly journal: string;
  readonly settings?: StatedSettings;
  readonly host?: string;
}

interface SimulatorCounts extends Readonly<Record<JournalEntry['decision'], number>> {
  readonly posts: number;
  readonly lookUps: number;
  /** Webhooks begun, and those of them that were answered with 2xx. */
  readonly told: number;
  readonly heard: number;
}

/** A counterparty that runs. */
export interface Simulator {
  readonly url: string;
  readonly port: number;
  /** Bytes of a last journal line that a kill had torn, cut off at this start; 0 where it was whole. */
  readonly tornBytes: number;
  counts(): SimulatorCounts;
  /** Resets every connection, abandons slow answers, and closes the journal. */
  stop(): Promise<void>;
}

/** What requests work with; `settings` changes by PUT /control/modes. */
export interface Counter {
  readonly bank: Bank;
  readonly teller: ReturnType<typeof createTeller>;
  settings: SimulatorSettings;
  lookUps: number;
  counts(): SimulatorCounts;
}

/**
 * Starts a counterparty that speaks the HTTP contract, as a real server: it remembers idempotency numbers and journals each
 * decision, fsynced before any answer; the journal's `executed` lines are the truth about money, and a restart on the same
 * file remembers. It can be told to misbehave (settings.ts) at the start or by PUT /control/modes.
 * @throws OnceperError `simulator_settings`, `port_taken`, `journal_corrupt`.
 */
export async function startSimulator(options: SimulatorOptions): Promise<Simulator> {
  const parsed = parseSettings(options.settings ?? {});
  if (parsed.kind === 'wrong') throw settingsFault(parsed.why);
  const bank = createBank();
  const tally: Tally = { seq: 0, arrivals: 0, tries: new Map() };
  const { tornBytes } = readJournal(options.journal, (entry) => remember(bank, tally, entry));
  const journal = await openJournal(options.journal);
  const stopping = new AbortController();
  // One listener for each slow answer; node takes more than ten for a leak and warns.
  setMaxListeners(0, stopping.signal);
  const herald = createHerald(() => counter.settings, stopping.signal);
  const counter: Counter = {
    bank,
    teller: createTeller({ bank, journal, tally, herald }, stopping.signal),
    settings: parsed.settings,
    lookUps: 0,
    counts: () => ({ ...bank.counts(), ...herald.counts(), posts: tally.arrivals, lookUps: counter.lookUps }),
  };
  const server = createServer({ keepAlive: true, noDelay: true }, (request, response) => {
    void handleRequest(counter, request, response);
  });
  const host = options.host ?? '127.0.0.1';
  try {
    await listen(server, options.port, host);
  } catch (error) {
    await journal.close();
    throw portFault(options.port, error);
  }
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : options.port;
  return {
    url: `http://${host}:${port}`,
    port,
    tornBytes,
    counts: () => counter.counts(),
    async stop() {
      stopping.abort();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await journal.close();
    },
  };
}

function remember(bank: Bank, tally: Tally, entry: JournalEntry): void {
  bank.apply(entry);
  tally.seq = Math.max(tally.seq, entry.seq);
  if (entry.decision === 'settled') return;
  tally.arrivals += 1;
  tally.tries.set(entry.number, (tally.tries.get(entry.number) ?? 0) + 1);
}

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function settingsFault(why: string): OnceperError {
  return new OnceperError({
    code: 'simulator_settings',
    message: `the simulator can’t be told this: ${why}`,
    remedy: 'see src/gateway/simulator/settings.ts for the settings and modes',
  });
}

function portFault(port: number, cause: unknown): OnceperError {
  return new OnceperError({
    code: 'port_taken',
    message: `the gateway can’t listen on port ${port}`,
    remedy: 'end what listens there, or give another --port',
    at: String(port),
    cause,
  });
}
