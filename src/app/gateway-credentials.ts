import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { TlsIdentity } from '../gateway/connections.ts';
import { OnceperError } from '../kernel/error.ts';

/** The files of what we show to the counterparty, and of whom we believe; null where none is named. */
export interface GatewayFiles {
  readonly token: string | null;
  readonly cert: string | null;
  readonly key: string | null;
  readonly ca: string | null;
}

export interface Credentials {
  readonly token?: () => string | null;
  readonly tls?: TlsIdentity;
}

const VARIABLE = {
  token: 'ONCEPER_GATEWAY_TOKEN_FILE',
  cert: 'ONCEPER_GATEWAY_CERT_FILE',
  key: 'ONCEPER_GATEWAY_KEY_FILE',
  ca: 'ONCEPER_GATEWAY_CA_FILE',
} as const satisfies Record<keyof GatewayFiles, string>;

/** The files that the variables name. */
export function gatewayFiles(
  own: Readonly<Partial<Record<(typeof VARIABLE)[keyof GatewayFiles], string | undefined>>>,
): GatewayFiles {
  return {
    token: own[VARIABLE.token] ?? null,
    cert: own[VARIABLE.cert] ?? null,
    key: own[VARIABLE.key] ?? null,
    ca: own[VARIABLE.ca] ?? null,
  };
}

/** RFC 6750's characters; a line end after it is no part of it. */
const TOKEN = /^([A-Za-z0-9._~+/-]+=*)\r?\n?$/;

/**
 * Reads what the files hold. Certificate, key and CA are read now, and stay; the token's file is read again whenever it has
 * changed, so that a token of an hour can be put in its place. What a file holds is never repeated.
 * @throws OnceperError `gateway_credentials` naming the variable.
 */
export function readCredentials(files: GatewayFiles): Credentials {
  const tls = readTls(files);
  return { ...(files.token === null ? {} : { token: tokenOf(files.token) }), ...(tls === null ? {} : { tls }) };
}

/** Throws where a file is named that nobody would read. Throws OnceperError `gateway_credentials`. */
export function refuseFiles(files: GatewayFiles, names: readonly (keyof GatewayFiles)[], reason: string): void {
  for (const name of names) if (files[name] !== null) throw unusable(name, reason, `unset ${VARIABLE[name]}`);
}

function tokenOf(file: string): () => string | null {
  let seen = versionOf(file);
  let token = tokenIn(file);
  if (token === null)
    throw unusable('token', `${file} can’t be read as one token`, 'write the token into it, and no more');
  return () => {
    const version = versionOf(file);
    // Replaced and half written, it is read again at the next call.
    if (version !== seen || token === null) token = tokenIn(file);
    seen = version;
    return token;
  };
}

/** What changes when a file is written or replaced; null where nothing can be said of it. */
function versionOf(file: string): string | null {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return null;
  }
}

function tokenIn(file: string): string | null {
  try {
    return TOKEN.exec(readFileSync(file, 'utf8'))?.[1] ?? null;
  } catch {
    return null;
  }
}

function readTls(files: GatewayFiles): TlsIdentity | null {
  const { cert, key, ca } = files;
  if (cert === null && key === null && ca === null) return null;
  if (cert !== null && key === null)
    throw unusable('key', 'a certificate is named without its key', 'name the key’s file');
  if (key !== null && cert === null) throw unusable('cert', 'a key is named without its certificate', 'name its file');
  const identity = {
    ...(cert === null ? {} : { cert: certificatesIn('cert', cert) }),
    ...(key === null ? {} : { key: textOf('key', key) }),
    ...(ca === null ? {} : { ca: certificatesIn('ca', ca) }),
  };
  try {
    createSecureContext(identity);
  } catch {
    // A parser's words could repeat a part of the key.
    throw unusable(
      'key',
      `${key} is no PEM key without a passphrase that belongs to the certificate`,
      'look at both files',
    );
  }
  return identity;
}

function certificatesIn(name: 'cert' | 'ca', file: string): string {
  const pem = textOf(name, file);
  if (isCertificate(pem)) return pem;
  throw unusable(name, `${file} holds no certificate`, 'write it as PEM');
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

function textOf(name: keyof GatewayFiles, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    throw unusable(name, `${file} can’t be read`, 'look at its path and its permissions');
  }
}

function unusable(name: keyof GatewayFiles, message: string, remedy: string): OnceperError {
  return new OnceperError({ code: 'gateway_credentials', message, remedy, at: VARIABLE[name] });
}
