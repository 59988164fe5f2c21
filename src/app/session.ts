import type { Client } from '@temporalio/client';
import type { Registry } from '../jobs/registry.ts';
import type { Actor } from '../kernel/actor.ts';
import { visibleJson } from '../kernel/visible.ts';
import type { Database } from '../store/database.ts';
import { actorOf } from './actor.ts';
import { type Config, loadConfig } from './config.ts';
import { temporalFault } from './fault.ts';
import type { Io } from './io.ts';
import { connectTemporal, createDatabase, createProcessLog } from './services.ts';
import { type Colours, colours, oneLine } from './terminal.ts';

/** What a command works with. Nothing is connected, and no variable read, before it is asked for. */
export interface Session {
  readonly io: Io;
  readonly colours: Colours;
  readonly wantsJson: boolean;
  readonly config: Config;
  readonly registry: Registry;
  /** Who types (actor.ts); asked once. Throws OnceperError `token_refused`, `token_expired`, `bad_configuration`. */
  readonly actor: () => Promise<Actor>;
  /** Prints the one answer of the command: the document with `--json`, else the text. */
  readonly answer: (document: unknown, text: string) => void;
  /** Tells a person, in one line on standard error, what is going on. */
  readonly note: (sentence: string) => void;
  withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T>;
  withTemporal<T>(work: (client: Client) => Promise<T>): Promise<T>;
}

/** A session of one command; `answered` is told when the answer has been printed, so that an error can't become a second. */
export function createSession(io: Io, wantsJson: boolean, answered: () => void): Session {
  let config: Config | undefined;
  let registry: Registry | undefined;
  let actor: Promise<Actor> | undefined;
  const isPlain = wantsJson || !io.isTerminal || (io.environment['NO_COLOR'] ?? '') !== '';
  const session: Session = {
    io,
    wantsJson,
    colours: colours(!isPlain),
    get config() {
      config ??= loadConfig({ ...io.environment });
      return config;
    },
    get registry() {
      registry ??= io.createJobs();
      return registry;
    },
    actor() {
      actor ??= actorOf(session.config.identity);
      return actor;
    },
    answer(document, text) {
      answered();
      io.out(`${wantsJson ? visibleJson(JSON.stringify(document, exactly)) : text.trimEnd()}\n`);
    },
    note: (sentence) => io.err(`${oneLine(sentence)}\n`),
    withDatabase: (work) => withDatabase(session.config, work),
    withTemporal: (work) => withTemporal(session.config, work),
  };
  return session;
}

async function withDatabase<T>(config: Config, work: (db: Database) => Promise<T>): Promise<T> {
  const db = createDatabase(config, createProcessLog(config, 'command'), { name: 'onceper command', max: 4 });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}

async function withTemporal<T>(config: Config, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connectTemporal(config);
  try {
    return await work(client);
  } catch (error) {
    throw temporalFault(error, config);
  } finally {
    await client.connection.close();
  }
}

/** Fences and amounts are bigint; JSON has no such number, so they are written as text. */
function exactly(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
