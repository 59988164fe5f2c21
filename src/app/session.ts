import type { Client } from '@temporalio/client';
import type { Registry } from '../jobs/registry.ts';
import type { Actor } from '../kernel/actor.ts';
import { visibleJson } from '../kernel/visible.ts';
import type { Database } from '../store/database.ts';
import { personOf } from './break-glass.ts';
import { type Config, loadConfig } from './config.ts';
import { temporalFault } from './fault.ts';
import type { Io } from './io.ts';
import { connectTemporal, createDatabase, createProcessLog } from './services.ts';
import { type Colours, colours, oneLine } from './terminal.ts';

/** What a command works with. Nothing is connected, and no variable read, before it is asked for. */
export interface Session {
  readonly io: Io;
  readonly colours: Colours;
  readonly hasColours: boolean;
  readonly wantsJson: boolean;
  readonly config: Config;
  readonly registry: Registry;
  /** Who types (actor.ts); asked once. Throws OnceperError `token_refused`, `token_expired`, `bad_configuration`. */
  readonly actor: () => Promise<Actor>;
  /** Prints the one answer of the command: the document with `--json`, else the text. */
  readonly answer: (document: unknown, text: string) => void;
  /** Tells a person, in one line on standard error, what is going on. */
  readonly note: (sentence: string) => void;
  /** Where the bytes of a file that was named are; its name stays the one to print. Throws OnceperError `file_unreadable`. */
  readonly pathOfFile: (name: string) => string;
  /** Aborted when whoever asked has left, or this process ends: nobody waits for more than what was begun. */
  readonly left: AbortSignal;
  /** States that what follows writes, so that the database is opened for whoever may. */
  readonly acts: (what: string) => void;
  withDatabase<T>(work: (db: Database) => Promise<T>): Promise<T>;
  withTemporal<T>(work: (client: Client) => Promise<T>): Promise<T>;
}

/** What is different where a command is performed here and where the server performs it for somebody. */
export interface Surroundings {
  readonly wantsJson: boolean;
  readonly hasColours: boolean;
  readonly answer: (document: unknown, text: string) => void;
  /** One line. */
  readonly note: (line: string) => void;
  readonly pathOfFile: (name: string) => string;
  readonly left: AbortSignal;
  /** Asked before a command that writes is given its database; throws where it may not write through it. */
  readonly admit: (db: Database, session: Session, what: string) => Promise<void>;
  /** Told as soon as a command turns out to be one that writes; may throw. */
  readonly onActs?: (what: string) => void;
}

/** A session of one command. */
export function createSession(io: Io, around: Surroundings): Session {
  let config: Config | undefined;
  let registry: Registry | undefined;
  let actor: Promise<Actor> | undefined;
  let acting: string | null = null;
  let admitted: Promise<void> | undefined;
  const session: Session = {
    io,
    wantsJson: around.wantsJson,
    colours: colours(around.hasColours),
    hasColours: around.hasColours,
    left: around.left,
    pathOfFile: around.pathOfFile,
    get config() {
      config ??= loadConfig({ ...io.environment });
      return config;
    },
    get registry() {
      registry ??= io.createJobs();
      return registry;
    },
    actor() {
      actor ??= personOf(session.config);
      return actor;
    },
    acts(what) {
      acting = what;
      around.onActs?.(what);
    },
    answer: around.answer,
    note: (sentence) => around.note(oneLine(sentence)),
    async withDatabase(work) {
      const log = createProcessLog(session.config, 'command');
      const db = createDatabase(session.config, log, { name: 'onceper command', max: 4 });
      try {
        if (acting !== null) await (admitted ??= around.admit(db, session, acting));
        return await work(db);
      } finally {
        await db.close();
      }
    },
    withTemporal: (work) => withTemporal(session.config, work),
  };
  return session;
}

/** The one JSON document of an answer, in the line that `--json` prints. */
export function documentText(document: unknown): string {
  return `${visibleJson(JSON.stringify(document, exactly))}\n`;
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
export function exactly(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? value.toString() : value;
}
