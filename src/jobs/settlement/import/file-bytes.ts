import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { codeOf, OnceperError } from '../../../kernel/error.ts';

/** A file as it is read: its bytes, unpacked where it is gz, and the SHA-256 of what lay on the disk. */
export interface FileBytes {
  readonly chunks: AsyncIterable<Buffer>;
  /** Hex; complete once `chunks` have been read to their end. */
  digest(): string;
}

const chunkBytes = 256 * 1024;

/**
 * Opens a file for one reading from front to back; gz is told by its first bytes, not by its name. Throws OnceperError
 * `file_unreadable`; a damaged gz ends the chunks with an error that `isGzFault` recognises.
 */
export async function readFileBytes(path: string): Promise<FileBytes> {
  const isGz = await startsLikeGz(path);
  const hash = createHash('sha256');
  const hashing = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      done(null, chunk);
    },
  });
  const raw = createReadStream(path, { highWaterMark: chunkBytes });
  // pipeline destroys every part on a fault; the last part carries it to whoever reads the chunks.
  const last = isGz ? createGunzip({ chunkSize: chunkBytes }) : hashing;
  // A small damaged file fails before anybody reads it. The stream keeps the fault for its reader; without a listener at that
  // moment it would end the process.
  last.on('error', () => undefined);
  if (isGz) pipeline(raw, hashing, last, () => undefined);
  else pipeline(raw, hashing, () => undefined);
  return { chunks: last, digest: () => hash.digest('hex') };
}

/** True for zlib's own errors: the file is cut or damaged, which is the file's fault and not the machine's. */
export function isGzFault(error: unknown): boolean {
  return codeOf(error)?.startsWith('Z_') ?? false;
}

async function startsLikeGz(path: string): Promise<boolean> {
  try {
    const file = await open(path);
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0);
      return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new OnceperError({
      code: 'file_unreadable',
      message: `the file ${path} can't be read (${codeOf(error) ?? String(error)})`,
      remedy: 'check the path and its permissions',
      at: path,
      cause: error,
    });
  }
}
