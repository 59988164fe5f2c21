/** One message of a client to PostgreSQL (protocol 3), whole; the first of a connection has no type. */
export interface Message {
  readonly type: string | null;
  readonly bytes: Buffer;
}

const LENGTH_BYTES = 4;

/** Cuts a client's bytes into messages and hands each over as soon as it is whole. TLS is not spoken on loopback. */
export function createMessageReader(take: (message: Message) => void): (data: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let isFirst = true;
  return (data) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const before = isFirst ? 0 : 1;
      if (rest.length < before + LENGTH_BYTES) return;
      const end = before + rest.readInt32BE(before);
      if (rest.length < end) return;
      const bytes = rest.subarray(0, end);
      const type = isFirst ? null : bytes.toString('latin1', 0, 1);
      rest = rest.subarray(end);
      isFirst = false;
      take({ type, bytes });
    }
  };
}

/** The SQL that a message carries: a simple query's text, or that of a statement to be parsed; null for every other message. */
export function sqlOf({ type, bytes }: Message): string | null {
  const body = 1 + LENGTH_BYTES;
  if (type === 'Q') return bytes.toString('utf8', body, bytes.length - 1);
  if (type !== 'P') return null;
  const nameEnd = bytes.indexOf(0, body);
  const sqlEnd = bytes.indexOf(0, nameEnd + 1);
  return bytes.toString('utf8', nameEnd + 1, sqlEnd);
}
