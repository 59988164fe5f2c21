import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { OnceperError } from '../kernel/error.ts';

/**
 * Where no receiver of the outside is: private, loopback, link-local, multicast and reserved networks, the clouds' metadata
 * (169.254.169.254, fd00:ec2::254, 168.63.129.16, 100.100.100.200, 192.0.0.192), and forms of IPv6 that lead into IPv4.
 */
const INTERNAL = blockListOf(
  [
    '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.168.0.0/16',
    '198.18.0.0/15 224.0.0.0/3 168.63.129.16/32',
    '::/127 fc00::/7 fe80::/10 fec0::/10 ff00::/8 64:ff9b::/96 64:ff9b:1::/48 2001::/32 2002::/16',
  ].flatMap((line) => line.split(' ')),
);

/** True for an address, or a network as address/bits. */
export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== null;
}

/** Which addresses may be connected to. */
export interface Networks {
  /** Null where an address may be connected to, and where a text is none but a name. */
  readonly refuse: (address: string) => Error | null;
  /** Resolves names as the system does; one of which any address is refused is refused whole. */
  readonly lookup: LookupFunction;
}

/** Every address that is not internal, and those of the `allowed` networks. */
export function networksWith(allowed: readonly string[], resolve: LookupFunction = lookup): Networks {
  const listed = blockListOf(allowed);
  const refuse = (stated: string): Error | null => {
    const address = plain(stated);
    const family = isIP(address);
    if (family === 0) return null;
    const kind = family === 4 ? 'ipv4' : 'ipv6';
    return listed.check(address, kind) || !INTERNAL.check(address, kind) ? null : new AddressRefused();
  };
  return {
    refuse,
    lookup(hostname, options, callback) {
      resolve(hostname, options, (error, found, family) => {
        if (error !== null) return callback(error, found, family);
        const addresses = typeof found === 'string' ? [found] : found.map(({ address }) => address);
        const refusal = addresses.map(refuse).find((each) => each !== null);
        return callback(refusal ?? null, found, family);
      });
    },
  };
}

/** Without the address: a name of the outside must not tell, through an error, what stands inside. */
class AddressRefused extends Error {
  readonly code = 'address_refused';
  constructor() {
    super('the address is internal, and not among the networks that are allowed');
  }
}

/** IPv4 in the form of IPv6 is IPv4, and a zone is no part of an address. */
function plain(address: string): string {
  const bare = address.replace(/^\[|\]$|%.*$/g, '');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  return mapped ?? bare;
}

interface Network {
  readonly address: string;
  readonly bits: number;
  readonly kind: 'ipv4' | 'ipv6';
}

function parseNetwork(text: string): Network | null {
  const [address = '', bits, ...more] = text.split('/');
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  const count = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
  if (family === 0 || more.length > 0 || address.includes('%') || count < 0 || count > most) return null;
  return { address, bits: count, kind: family === 4 ? 'ipv4' : 'ipv6' };
}

function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of networks) {
    const network = parseNetwork(text);
    if (network === null) throw networkFault(text);
    list.addSubnet(network.address, network.bits, network.kind);
  }
  return list;
}

function networkFault(text: string): OnceperError {
  return new OnceperError({
    code: 'receiver_network',
    message: `'${text}' is neither an address nor a network`,
    remedy: 'write it as 10.20.0.0/16 or 127.0.0.1',
    at: text,
  });
}
