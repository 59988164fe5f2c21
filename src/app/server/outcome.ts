import type { ServerResponse } from 'node:http';
import { OnceperError } from '../../kernel/error.ts';
import { visibleJson } from '../../kernel/visible.ts';
import { type ExitCode, exitCodeOfError } from '../exit-codes.ts';
import { faultDocument } from '../fault.ts';
import { documentText, exactly } from '../session.ts';
import { partsOf } from '../terminal.ts';
import { statusOfError } from './status.ts';

/** The lines of a streamed answer. */
export const STREAM = 'application/x-ndjson';

/** Where the answer to one request goes: as it comes, or whole at its end. */
export interface Outcome {
  readonly note: (line: string) => void;
  readonly answer: (document: unknown, text: string) => void;
  /** The end: its exit code, or the fault. */
  readonly end: (ended: { readonly exit: ExitCode } | { readonly fault: OnceperError }) => void;
}

/**
 * Lines of JSON: `{"note"}` while it goes on, `{"answer","text"}`, a `{"fault"}`, and at the end, and at the end only, `{"exit"}`. The
 * text comes in parts, in which a number is a colour of ours, so that what others wrote can't be one.
 */
export function streamed(response: ServerResponse): Outcome {
  const line = (value: unknown) => {
    // Whoever asked has left; the command goes on to its end.
    if (response.closed) return;
    if (!response.headersSent) response.writeHead(200, { 'content-type': STREAM });
    response.write(`${visibleJson(JSON.stringify(value, exactly))}\n`);
  };
  return {
    note: (note) => line({ note }),
    answer: (answer, text) => line({ answer, text: partsOf(text) }),
    end(ended) {
      if ('fault' in ended) line({ fault: faultDocument(ended.fault).error });
      line({ exit: exitOf(ended) });
      response.end();
    },
  };
}

/** Exactly the document that `--json` prints, under a status that fits it. */
export function whole(response: ServerResponse): Outcome {
  let answered: unknown;
  let isAnswered = false;
  return {
    note: () => undefined,
    answer(document) {
      answered = document;
      isAnswered = true;
    },
    end(ended) {
      if ('fault' in ended && !isAnswered) return refuse(response, ended.fault);
      send(response, 200, answered, { 'onceper-exit-code': String(exitOf(ended)) });
    },
  };
}

/** A fault as the whole answer. */
export function refuse(response: ServerResponse, fault: OnceperError): void {
  const status = statusOfError(fault.code);
  // A body that nobody reads must not be taken for the next request.
  const unread = response.req.complete ? {} : { connection: 'close' };
  send(response, status, faultDocument(fault), {
    'onceper-exit-code': String(exitCodeOfError(fault.code)),
    ...(status === 503 ? { 'retry-after': '1' } : {}),
    ...(status === 401 ? { 'www-authenticate': 'Bearer realm="onceper"' } : {}),
    ...unread,
  });
}

/** One JSON document. */
export function send(
  response: ServerResponse,
  status: number,
  document: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(documentText(document));
}

function exitOf(ended: { readonly exit: ExitCode } | { readonly fault: OnceperError }): ExitCode {
  return 'fault' in ended ? exitCodeOfError(ended.fault.code) : ended.exit;
}

/** A refusal in our words. */
export function fault(code: string, message: string, remedy: string, at: string | null = null): OnceperError {
  return new OnceperError({ code, message, remedy, at });
}
