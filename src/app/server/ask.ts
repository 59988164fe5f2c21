import { createReadStream, readFileSync, statSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request as overHttp, type RequestOptions } from 'node:http';
import { request as overHttps } from 'node:https';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { OnceperError } from '../../kernel/error.ts';
import { tokenNeeded } from '../actor.ts';
import type { Config } from '../config.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';
import { isLoopback } from '../loopback.ts';
import type { Session } from '../session.ts';
import { textOfParts } from '../terminal.ts';
import { fileNamedBy } from './named-files.ts';
import { addressOf, isServed } from './route.ts';
import type { Call } from './typed-words.ts';

/**
 * Lets the server perform a command and prints what it says; null where the command stays here: it is nobody's to ask for, no
 * server is named, or the glass is broken. Throws OnceperError `server_unreachable`, `server_lost`, `token_needed`,
 * `server_plain_http`, and what the server threw.
 */
export function askServer(session: Session, call: Call): Promise<ExitCode> | null {
  if (!isServed(call.path)) return null;
  const { server, identity } = session.config;
  if (server.url === null || server.breakGlass !== null) return null;
  const { token } = identity;
  if (token === null) return Promise.reject(tokenNeeded());
  refusePlainHttp(server);
  return ask(session, call, { url: new URL(server.url), token });
}

interface Address {
  readonly url: URL;
  readonly token: string;
}

async function ask(session: Session, call: Call, to: Address): Promise<ExitCode> {
  const response = await send(session, call, to);
  if (!response.headers['content-type']?.includes('x-ndjson')) throw await refusal(response, to.url);
  let fault: OnceperError | null = null;
  try {
    for await (const text of createInterface({ input: response, crlfDelay: Number.POSITIVE_INFINITY })) {
      const line = lineShape.parse(JSON.parse(text));
      if ('note' in line) session.note(line.note);
      else if ('answer' in line) session.answer(line.answer, textOfParts(line.text));
      else if ('fault' in line) fault = new OnceperError(line.fault);
      else if (fault !== null) throw fault;
      else return line.exit;
    }
  } catch (error) {
    if (error === fault) throw error;
    throw lost(to.url, error);
  }
  throw lost(to.url, null);
}

const faultShape = z.object({
  code: z.string(),
  message: z.string(),
  remedy: z.string(),
  at: z.string().nullable(),
});
const exitShape = z.literal(Object.values(EXIT));
const lineShape = z.union([
  z.strictObject({ note: z.string() }),
  z.strictObject({ answer: z.unknown(), text: z.array(z.union([z.string(), z.number()])) }),
  z.strictObject({ fault: faultShape }),
  z.strictObject({ exit: exitShape }),
]);

/** Sends the call, and with it the bytes of the file that it names. */
function send(session: Session, call: Call, { url, token }: Address): Promise<IncomingMessage> {
  const named = fileNamedBy(call);
  const path = named === null ? null : session.pathOfFile(named);
  const options: RequestOptions = {
    method: 'POST',
    // A connection of its own: one that was kept could be closed at this moment.
    agent: false,
    path: path === null ? addressOf({ ...call, arguments: [], options: {} }) : addressOf(call),
    headers: {
      authorization: `Bearer ${token}`,
      accept: 'application/x-ndjson',
      ...(path === null ? { 'content-type': 'application/json' } : headersOfFile(path)),
      ...(session.hasColours ? { 'onceper-colours': 'yes' } : {}),
    },
  };
  const sent = open(session.config, url, options);
  const body = JSON.stringify({ arguments: call.arguments, options: call.options });
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const connects = url.protocol === 'https:' ? 'secureConnect' : 'connect';
    sent.once('socket', (socket) => socket.once(connects, () => (isConnected = true)));
    sent.once('response', resolve);
    sent.once('error', (error) => reject(isConnected ? lost(url, error) : unreachable(url, error)));
    if (path === null) sent.end(body);
    else {
      sent.flushHeaders();
      sent.once('continue', () => {
        const file = createReadStream(path);
        file.once('error', (error) => sent.destroy(error)).pipe(sent);
      });
    }
  });
}

/** The server says whether it takes the file before the file is sent. */
function headersOfFile(path: string): Readonly<Record<string, string>> {
  const file = statSync(path);
  return {
    'content-type': 'application/octet-stream',
    expect: '100-continue',
    ...(file.isFile() ? { 'content-length': String(file.size) } : {}),
  };
}

function open({ server }: Config, url: URL, options: RequestOptions): ClientRequest {
  if (url.protocol === 'http:') return overHttp(url, options);
  if (server.caFile === null) return overHttps(url, options);
  try {
    return overHttps(url, { ...options, ca: readFileSync(server.caFile) });
  } catch (error) {
    throw new OnceperError({
      code: 'server_certificate',
      message: `${server.caFile} can't be read as certificates`,
      remedy: 'name the PEM file of the authority that signed the server’s certificate',
      at: 'ONCEPER_SERVER_CA_FILE',
      cause: error,
    });
  }
}

/** More than any fault has. */
const MOST_BYTES = 65_536;

/** What the server says instead of an answer; whoever else answers is none of ours. */
async function refusal(response: IncomingMessage, url: URL): Promise<OnceperError> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of response) {
    bytes += (part as Buffer).length;
    if (bytes > MOST_BYTES) break;
    parts.push(part as Buffer);
  }
  try {
    const { error } = z.object({ error: faultShape }).parse(JSON.parse(Buffer.concat(parts).toString('utf8')));
    return new OnceperError(error);
  } catch (cause) {
    return new OnceperError({
      code: 'server_unreachable',
      message: `what answers there, with status ${response.statusCode ?? 0}, is no onceper server`,
      remedy: 'look at ONCEPER_SERVER, and at what stands between',
      at: url.origin,
      cause,
    });
  }
}

function unreachable(url: URL, cause: Error): OnceperError {
  return new OnceperError({
    code: 'server_unreachable',
    message: `onceper server can't be reached: ${cause.message}`,
    remedy: 'start it (npx onceper server) or point ONCEPER_SERVER at the one that runs',
    at: url.origin,
    cause,
  });
}

function lost(url: URL, cause: unknown): OnceperError {
  return new OnceperError({
    code: 'server_lost',
    message: 'the server went away before it had answered: what was asked for is done or not begun',
    remedy: 'type the same again: what was done is recognised, and the same request twice is one',
    at: url.origin,
    cause,
  });
}

/** A token that goes readable over a network is everybody's. */
function refusePlainHttp({ url, plainHttp }: Config['server']): void {
  if (url === null || plainHttp === 'anywhere') return;
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' || isLoopback(hostname)) return;
  throw new OnceperError({
    code: 'server_plain_http',
    message: 'the server is on another machine, and over plain http anyone on the way reads the token',
    remedy: 'write https, or set ONCEPER_SERVER_PLAIN_HTTP=anywhere where the way itself is yours',
    at: 'ONCEPER_SERVER',
  });
}
