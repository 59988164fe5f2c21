import { createPublicKey } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { OnceperError } from '../../kernel/error.ts';
import { readKey } from '../actor.ts';
import type { Act } from '../command.ts';
import type { Config } from '../config.ts';
import type { Io } from '../io.ts';
import { isLoopback } from '../loopback.ts';
import { refuseOverprivileged } from '../own-login.ts';
import { runProcess } from '../process.ts';
import { createDatabase } from '../services.ts';
import { startPeopleServer } from './people-server.ts';

/** Variables that are of a person, and of whom this process is none. */
const OF_PEOPLE = ['ONCEPER_TOKEN', 'ONCEPER_SERVER', 'ONCEPER_BREAK_GLASS', 'ONCEPER_ACTOR'];

/**
 * `onceper server`: acts for people whom it has verified, until SIGTERM; then it takes no more, ends what is under way and
 * returns. Throws OnceperError `bad_configuration` without a key to verify with, `overprivileged`, `port_taken`,
 * `server_plain_http`, `server_certificate`, `start_timed_out`.
 */
export async function runServerProcess(
  parts: { readonly config: Config; readonly io: Io; readonly createProgram: (act: Act) => Command },
  options: {
    readonly listen: { readonly host: string; readonly port: number };
    readonly onListening: (url: string) => void;
  },
): Promise<void> {
  const { config } = parts;
  // A token is asked of everybody, on one machine too: another user of it can reach the port.
  readKey(config.identity.tokenKey, 'ONCEPER_TOKEN_KEY', createPublicKey);
  const tls = readTls(config);
  refusePlainHttp(config, options.listen.host, tls !== null);
  await runProcess(config, 'server', async ({ log, draining, start, atEnd }) => {
    const db = createDatabase(config, log, { name: 'onceper server', max: 4 });
    atEnd('PostgreSQL', () => db.close());
    await start('PostgreSQL', () => refuseOverprivileged(db, 'server'));
    const environment = Object.fromEntries(
      Object.entries(parts.io.environment).filter(([name]) => !OF_PEOPLE.includes(name)),
    );
    const serving = { ...parts, io: { ...parts.io, environment }, db, log };
    const server = await startPeopleServer(serving, { listen: options.listen, tls });
    log({ event: 'server_started', url: server.url });
    options.onListening(server.url);
    if (!draining.aborted) await once(draining, 'abort');
    await server.stop(config.drainGraceMs);
  });
}

function readTls({ server }: Config): { readonly cert: string; readonly key: string } | null {
  const { certFile, keyFile } = server;
  if (certFile === null && keyFile === null) return null;
  const read = (file: string | null, variable: string) => {
    try {
      if (file !== null) return readFileSync(file, 'utf8');
    } catch {
      // What a file holds is never repeated, and why it can't be read is said by its name.
    }
    throw new OnceperError({
      code: 'server_certificate',
      message:
        file === null ? `${variable} is not set, and the other file is of no use alone` : `${file} can't be read`,
      remedy: 'name the files of the certificate and of its key, or neither',
      at: variable,
    });
  };
  return { cert: read(certFile, 'ONCEPER_SERVER_CERT_FILE'), key: read(keyFile, 'ONCEPER_SERVER_KEY_FILE') };
}

function refusePlainHttp({ server }: Config, host: string, isTls: boolean): void {
  if (isTls || server.plainHttp === 'anywhere' || isLoopback(host)) return;
  throw new OnceperError({
    code: 'server_plain_http',
    message: 'over plain http anyone on the way reads the tokens of people, and is those people',
    remedy:
      'name ONCEPER_SERVER_CERT_FILE and ONCEPER_SERVER_KEY_FILE, or set ONCEPER_SERVER_PLAIN_HTTP=anywhere where the way is yours',
    at: 'ONCEPER_SERVER_LISTEN',
  });
}
