import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Anchor, AuditHead } from '../../kernel/audit.ts';
import { OnceperError } from '../../kernel/error.ts';
import type { Instant } from '../../kernel/sql.ts';

/** Makes an anchor of a head, signed where there is a private key. */
export function anchorOf(head: AuditHead & { readonly at: Instant }, key: KeyObject | null): Anchor {
  const said = { seq: head.seq.toString(), hash: head.hash, at: head.at };
  if (key === null) return { ...said, signature: null, signer: null };
  return { ...said, signature: sign(null, signedText(said), key).toString('base64'), signer: signerOf(key) };
}

/** Whether the anchor was signed with this public key. */
export function isSignedBy(anchor: Anchor, key: KeyObject): boolean {
  return anchor.signature !== null && verify(null, signedText(anchor), key, Buffer.from(anchor.signature, 'base64'));
}

/**
 * The anchors in lines of JSON, for example a worker's log; what else is in them is passed over. Throws OnceperError `no_anchor`
 * where no line has one.
 */
export async function anchorsIn(lines: AsyncIterable<string> | Iterable<string>, at: string): Promise<Anchor[]> {
  // A head that did not move is anchored every minute: one of its lines says it all, as long as they agree.
  const anchors = new Map<string, Anchor>();
  for await (const line of lines) {
    const anchor = anchorIn(line);
    if (anchor !== null) anchors.set(`${anchor.seq} ${anchor.hash} ${anchor.signature === null}`, anchor);
  }
  if (anchors.size > 0) return [...anchors.values()].sort(bySeq);
  throw new OnceperError({
    code: 'no_anchor',
    message: 'no line of it is an anchor of the audit',
    remedy: 'give a worker’s log: its lines with "event":"audit_anchor" are the anchors',
    at,
  });
}

function anchorIn(line: string): Anchor | null {
  if (!line.includes('"hash"')) return null;
  try {
    const { seq, hash, at, signature, signer } = JSON.parse(line) as Record<string, unknown>;
    if (typeof seq !== 'string' || !/^\d{1,18}$/.test(seq) || typeof hash !== 'string' || typeof at !== 'string')
      return null;
    return { seq, hash, at, signature: textOrNull(signature), signer: textOrNull(signer) };
  } catch {
    return null;
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function bySeq(a: Anchor, b: Anchor): number {
  return a.seq.length - b.seq.length || (a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0);
}

function signedText({ seq, hash, at }: Pick<Anchor, 'seq' | 'hash' | 'at'>): Buffer {
  return Buffer.from(`onceper audit anchor ${canonicalize({ seq, hash, at }) ?? ''}`);
}

function signerOf(key: KeyObject): string {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  const der = publicKey.export({ format: 'der', type: 'spki' });
  return createHash('sha256').update(der).digest('hex').slice(0, 16);
}
