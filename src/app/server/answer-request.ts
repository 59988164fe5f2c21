import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Actor } from '../../kernel/actor.ts';
import type { OnceperError } from '../../kernel/error.ts';
import { bodyOf } from '../../relay/webhooks/body.ts';
import { actorOfToken, tokenNeeded } from '../actor.ts';
import { type ExitCode, exitCodeOfError } from '../exit-codes.ts';
import { faultOf, usage } from '../fault.ts';
import { perform } from '../perform.ts';
import type { Surroundings } from '../session.ts';
import { fileNamedBy } from './named-files.ts';
import { fault, type Outcome, refuse, STREAM, streamed, whole } from './outcome.ts';
import type { Handling } from './people-server.ts';
import type { Refusal } from './refusals.ts';
import { parseBody, type Route } from './route.ts';
import { type Spool, spoolOf } from './spool.ts';
import { type Call, commandAt, wordsOf } from './typed-words.ts';

const BEARER = /^Bearer ([A-Za-z0-9._~+/-]+=*)$/i;
const UPLOAD = 'application/octet-stream';

/** Answers one request for a command: who asks, what it is told, and what becomes of it; then one line in the log. */
export async function answerRequest(
  parts: Handling,
  route: Route,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const since = performance.now();
  const from = request.socket.remoteAddress ?? '';
  let actor: Actor | null = null;
  let spool: Spool | null = null;
  let exit: ExitCode | null = null;
  const refused = async (code: string) => {
    const refusal = { actor: actor?.id ?? null, command: route.path, code, from };
    parts.log({ event: 'server_refused', ...refusal });
    if (route.isWriting) await audit(parts, refusal);
  };
  const outcome = request.headers.accept?.includes(STREAM) ? streamed(response) : whole(response);
  try {
    const token = BEARER.exec(request.headers.authorization ?? '')?.[1] ?? null;
    if (token === null) throw tokenNeeded();
    actor = await actorOfToken(token, parts.config.identity);
    if (request.method !== 'POST' && (request.method !== 'GET' || route.isWriting)) throw notAllowed(route.path);
    const isUpload = request.method === 'POST' && request.headers['content-type'] === UPLOAD;
    if (isUpload) spool = await spoolOf(request, response, parts.config.server.uploadLimitBytes);
    const call = request.method === 'GET' || isUpload ? route : await calledBy(parts, route, request);
    const ended = await performFor(parts, call, { token, request, response, outcome, spool });
    exit = 'exit' in ended ? ended.exit : exitCodeOfError(ended.fault.code);
    // Before the answer: whoever is told no knows that it is written down.
    if ('fault' in ended && ended.fault.code === 'forbidden') await refused(ended.fault.code);
    outcome.end(ended);
  } catch (error) {
    const thrown = faultOf(error);
    if (response.headersSent) throw error;
    if (thrown.code.startsWith('token_')) await refused(thrown.code);
    refuse(response, thrown);
  } finally {
    spool?.remove();
    const ms = Math.round(performance.now() - since);
    const { statusCode: status } = response;
    parts.log({ event: 'server_answered', command: route.path, actor: actor?.id ?? null, status, exit, ms });
  }
}

/** An audit that can't be written is no reason to let somebody do what they may not. */
async function audit({ audit: write, log }: Handling, refusal: Refusal): Promise<void> {
  try {
    await write(refusal);
  } catch (error) {
    log({ event: 'server_fault', message: error instanceof Error ? error.message : String(error) });
  }
}

async function calledBy({ limits }: Handling, route: Route, request: IncomingMessage): Promise<Call> {
  const waiting = new AbortController();
  const late = delay(limits.bodyMs, 'late' as const, { signal: waiting.signal, ref: false });
  const body = await Promise.race([bodyOf(request), late]);
  if (body === 'late') throw fault('request_slow', 'the body did not arrive in time', 'send it again, at once');
  late.catch(() => undefined);
  waiting.abort();
  if (body === null) throw fault('body_too_large', 'the body is too long, or was cut', 'send one JSON object');
  const parsed = parseBody(body.toString('utf8'));
  if (parsed === null) throw usage('the body is not {"arguments":[…],"options":{…}}', null, 'see docs/server.md');
  return {
    path: route.path,
    arguments: [...route.arguments, ...parsed.arguments],
    options: { ...route.options, ...parsed.options },
  };
}

/** Performs a call as its bearer. */
async function performFor(
  parts: Handling,
  call: Call,
  asked: {
    readonly token: string;
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly outcome: Outcome;
    readonly spool: Spool | null;
  },
): Promise<{ readonly exit: ExitCode } | { readonly fault: OnceperError }> {
  const { request, response, outcome, spool } = asked;
  const program = parts.createProgram(() => () => Promise.resolve());
  const words = wordsOf(commandAt(program, call.path) ?? program, call);
  if (words === null) throw usage('an option is unknown, or has a value that it does not take', call.path, '--help');
  const left = new AbortController();
  response.once('close', () => left.abort());
  const around: Surroundings = {
    wantsJson: false,
    hasColours: request.headers['onceper-colours'] === 'yes',
    answer: outcome.answer,
    note: outcome.note,
    pathOfFile(name) {
      if (spool !== null && fileNamedBy(call) === name) return spool.path;
      throw fault('file_needed', 'the server reads no files of its own', `send the bytes as ${UPLOAD}`, name);
    },
    left: AbortSignal.any([left.signal, parts.stopping]),
    admit: () => Promise.resolve(),
    onActs(what) {
      if (request.method === 'GET') throw notAllowed(what);
    },
  };
  // Whoever asks is the bearer, whatever the server's own variables say.
  const io = { ...parts.io, environment: { ...parts.io.environment, ONCEPER_TOKEN: asked.token } };
  const ended = await perform((act) => commandAt(parts.createProgram(act), call.path) ?? program, words, {
    io,
    around,
  });
  return 'exit' in ended ? ended : { fault: faultOf(ended.thrown) };
}

function notAllowed(what: string): OnceperError {
  return fault('method_not_allowed', `${what} writes: GET can't ask for it`, 'use POST', what);
}
