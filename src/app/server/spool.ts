import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OnceperError } from '../../kernel/error.ts';

/** A file that was sent, in a folder of its own that only this user can enter. */
export interface Spool {
  readonly path: string;
  remove(): void;
}

/** A sender of which nothing comes for so long is gone. */
const SILENT_MS = 30_000;

/**
 * Writes the body of a request into a private file; whatever goes wrong, nothing stays. Throws OnceperError `file_too_large`,
 * `file_cut`.
 */
export async function spoolOf(request: IncomingMessage, response: ServerResponse, limitBytes: number): Promise<Spool> {
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) throw tooLarge(limitBytes);
  // Whoever waits to be let send has sent nothing in vain.
  if (request.headers.expect !== undefined) response.writeContinue();
  const folder = mkdtempSync(join(tmpdir(), 'onceper-file-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const path = join(folder, 'file');
  request.setTimeout(SILENT_MS, () => request.destroy());
  try {
    await store(request, path, limitBytes);
    return { path, remove };
  } catch (error) {
    remove();
    throw error instanceof OnceperError ? error : cut(error);
  }
}

async function store(request: IncomingMessage, path: string, limitBytes: number): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  let bytes = 0;
  try {
    // The connection stays, for the answer.
    for await (const part of request.iterator({ destroyOnReturn: false })) {
      bytes += (part as Buffer).length;
      if (bytes > limitBytes) throw tooLarge(limitBytes);
      await file.writeFile(part as Buffer);
    }
  } finally {
    await file.close();
  }
  if (!request.complete) throw cut(null);
}

function tooLarge(limitBytes: number): OnceperError {
  return new OnceperError({
    code: 'file_too_large',
    message: `the file is longer than the ${limitBytes} bytes that the server takes`,
    remedy: 'send it in parts, packed as gz, or raise ONCEPER_SERVER_UPLOAD_LIMIT of the server',
    at: null,
  });
}

function cut(cause: unknown): OnceperError {
  return new OnceperError({
    code: 'file_cut',
    message: 'the file did not arrive whole, and nothing of it was used',
    remedy: 'send it again',
    at: null,
    cause,
  });
}
