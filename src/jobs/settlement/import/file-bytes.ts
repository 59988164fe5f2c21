import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline, Transform } from 'node:stream';
import { createGunzip, type Gunzip } from 'node:zlib';
import { codeOf, OnceperError } from '../../../kernel/error.ts';

/** A file as it is read: its bytes, unpacked where it is gz, and the SHA-256 of what lay on the disk. */
export interface FileBytes {
  readonly chunks: AsyncIterable<Buffer>;
  /** Hex; complete once `chunks` have been read to their end. */
  digest(): string;
}

const chunkBytes = 256 * 1024;

/** No export of transactions packs like that, and 5 MB of gz can hold 5 GB of commas, which take minutes to refuse row by row. */
const mostTimes = 100;
const anyTimesUntil = 4 * 1024 * 1024;

/**
 * Opens a file for one reading from front to back; gz is told by its first bytes, not by its name. Throws OnceperError
 * `file_unreadable`; a gz that is damaged, or unpacks to more than 100 times its size, ends the chunks with an error that
 * `gzFault` knows.
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
  const gunzip = isGz ? createGunzip({ chunkSize: chunkBytes }) : null;
  const last = gunzip ?? hashing;
  // A small damaged file fails before anybody reads it. The stream keeps the fault for its reader; without a listener at that
  // moment it would end the process.
  last.on('error', () => undefined);
  if (gunzip === null) pipeline(raw, hashing, () => undefined);
  else pipeline(raw, hashing, gunzip, () => undefined);
  return { chunks: gunzip === null ? hashing : bounded(gunzip), digest: () => hash.digest('hex') };
}

class TooDense extends Error {}

async function* bounded(gunzip: Gunzip): AsyncGenerator<Buffer> {
  let unpacked = 0;
  for await (const chunk of gunzip as AsyncIterable<Buffer>) {
    unpacked += chunk.length;
    // bytesWritten is what zlib has taken in, not what lies in the buffers before it.
    if (unpacked > anyTimesUntil && unpacked > mostTimes * gunzip.bytesWritten) throw new TooDense();
    yield chunk;
  }
}

/** What is wrong with the gz, which is the file's fault and not the machine's; null for any other error. */
export function gzFault(error: unknown): string | null {
  if (error instanceof TooDense) {
    return `the gz file unpacks to more than ${mostTimes} times its size here, and was read no further; if it is meant so, unpack it and import the plain file`;
  }
  const code = codeOf(error);
  return code?.startsWith('Z_') ? `the gz file is cut or damaged here (${code})` : null;
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
