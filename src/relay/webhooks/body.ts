import type { IncomingMessage } from 'node:http';

/** More than any message of a counterparty has, and what one connection may hold of our memory. */
const MOST_KEPT = 256 * 1_024;

/** So much is read, and thrown away, that whoever sends somewhat too much can still read the answer. */
const MOST_READ = 1_024 * 1_024;

/**
 * The bytes of a request as they came; null where they are too many or end early. What has no end is given up at 1 MiB, while
 * it still arrives, and what says beforehand that it is longer is not read at all: the caller answers and closes.
 */
export function bodyOf(request: IncomingMessage): Promise<Buffer | null> {
  if (Number(request.headers['content-length'] ?? 0) > MOST_READ) return Promise.resolve(null);
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes <= MOST_KEPT) parts.push(part);
      else parts.length = 0;
      if (bytes > MOST_READ) giveUp();
    });
    const giveUp = () => {
      request.removeAllListeners('data').pause();
      resolve(null);
    };
    request.on('end', () => resolve(bytes <= MOST_KEPT ? Buffer.concat(parts) : null));
    request.on('close', () => resolve(null));
    request.on('error', () => resolve(null));
  });
}
