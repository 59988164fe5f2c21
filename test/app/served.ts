import { request as overHttp } from 'node:http';
import { createProgram } from '../../src/app/cli.ts';
import { loadConfig } from '../../src/app/config.ts';
import { type ServerLimits, startPeopleServer } from '../../src/app/server/people-server.ts';
import type { Job } from '../../src/jobs/job.ts';
import { createRegistry } from '../../src/jobs/registry.ts';
import type { Event } from '../../src/observability/events.ts';
import { openDatabase } from '../../src/store/database.ts';
import { insert, type Statement } from '../store/by-hand-rows.ts';
import { as, emptyHome } from './command-line.ts';

/** Settlement by the month, from August 2026 on. */
export const MONTHLY_JOB: readonly Statement[] = [
  insert('onceper.rule', {
    body: JSON.stringify({
      job: 'settlement',
      zone: 'UTC',
      period: 'month',
      first: '2026-08',
      calendar: { hour: 2, minute: 0 },
      parameters: { fees: {} },
    }),
  }),
  insert('onceper.job'),
];

/** What the server answered. */
interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

interface Asked {
  readonly method?: string;
  readonly token?: string | null;
  readonly body?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A server that acts for people, in this process. */
export interface Served {
  readonly url: string;
  readonly events: readonly Event[];
  /** Sends a request; the address goes as it is, nobody mends it. */
  readonly ask: (path: string, asked?: Asked) => Promise<Answered>;
  readonly stop: (graceMs?: number) => Promise<void>;
}

/** Starts one for a database; `given` are the only variables that it sees. */
export async function serve(
  given: Readonly<Record<string, string>> & { readonly DATABASE_URL: string },
  options: { readonly jobs?: readonly Job[]; readonly limits?: Partial<ServerLimits>; readonly port?: number } = {},
): Promise<Served> {
  const { ONCEPER_TOKEN_KEY = '' } = await as('nobody');
  const environment = { ONCEPER_HOME: emptyHome, ONCEPER_LOG_LEVEL: 'silent', ONCEPER_TOKEN_KEY, ...given };
  const silent = () => undefined;
  const io = {
    out: silent,
    err: silent,
    refusal: () => Promise.resolve(null),
    isTerminal: false,
    environment,
    createJobs: () => createRegistry(options.jobs ?? []),
  };
  const db = openDatabase({ url: given.DATABASE_URL, name: 'test server', max: 2 });
  const events: Event[] = [];
  const server = await startPeopleServer(
    {
      io,
      config: loadConfig(environment),
      createProgram: (act) => createProgram({ out: silent, err: silent }, act),
      db,
      log: (event) => void events.push(event),
    },
    {
      listen: { host: '127.0.0.1', port: options.port ?? 0 },
      tls: null,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
    },
  );
  return {
    url: server.url,
    events,
    ask: (path, asked = {}) => ask(server.url, path, asked),
    async stop(graceMs = 10_000) {
      await server.stop(graceMs);
      await db.close();
    },
  };
}

function ask(url: string, path: string, { method, token, body, headers }: Asked): Promise<Answered> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = overHttp(
      {
        hostname,
        port,
        path,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { ...(token === null || token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.once('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(parts).toString('utf8'),
          }),
        );
        response.once('error', reject);
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });
}
