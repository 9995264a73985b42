// Which addresses the console and the agent may connect to on somebody's word, and which origins may name:
// special-purpose ranges are refused unless an allow list says otherwise. Names are resolved once, every address is checked, and the caller
// connects to a checked one, so that a second answer of the resolver changes nothing.
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

const SPECIAL_RANGES: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/128',
  '::1/128',
  // What follows with an IPv4 address inside is a tunnel or an old notation: packets could end up at that address.
  '::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  // IETF protocol assignments: Teredo tunnels, benchmarking, anycast of protocols. No server of a stranger is there.
  '2001::/23',
  '100::/64',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

// IPv6 ranges whose last 32 bits are an IPv4 address that packets end up at.
const NAT64_RANGE = '64:ff9b::/96';
const MAX_ADDRESSES = 32;

interface Range {
  text: string;
  matches: (address: string, family: 'ipv4' | 'ipv6') => boolean;
}

function toRange(text: string): Range {
  const [network, bits] = text.split('/') as [string, string];
  const family = isIP(network) === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family);
  // A BlockList judges mapped addresses by itself; families are kept apart so that ranges mean what they say.
  return { text, matches: (address, asked) => asked === family && list.check(address, asked) };
}

const RANGES = SPECIAL_RANGES.map(toRange);
const NAT64 = toRange(NAT64_RANGE);

/** The address that decides: the embedded IPv4 address of IPv4-mapped and NAT64 addresses, else the address itself. */
export function decidingAddress(address: string): string {
  if (isIP(address) !== 6) return address;
  const parsed = ipaddr.parse(withoutZone(address)) as ipaddr.IPv6;
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  if (NAT64.matches(parsed.toString(), 'ipv6')) return parsed.toByteArray().slice(12).join('.');
  return parsed.toString();
}

/** The special-purpose range (CIDR) an IP address falls in, null for an ordinary one. Throws on anything but an address. */
export function specialRange(address: string): string | null {
  if (isIP(address) === 0) throw new TypeError(`not an IP address: ${address}`);
  const deciding = decidingAddress(address);
  const family = isIP(deciding) === 4 ? 'ipv4' : 'ipv6';
  return RANGES.find((range) => range.matches(deciding, family))?.text ?? null;
}

/** Whether one of the CIDRs in `allow` covers the address (or the IPv4 address it embeds). */
export function isAllowed(address: string, allow: readonly string[]): boolean {
  const deciding = decidingAddress(address);
  const family = isIP(deciding) === 4 ? 'ipv4' : 'ipv6';
  return allow.some((cidr) => toRange(cidr).matches(deciding, family));
}

/** Why {@link resolveChecked} gave no address. */
export class AddressRefused extends Error {
  /** `forbidden`: a special-purpose address; `unresolvable`: no answer, or too many; `timeout`: none in time. */
  readonly reason: 'forbidden' | 'unresolvable' | 'timeout';
  readonly address: string | null;
  readonly range: string | null;

  constructor(reason: AddressRefused['reason'], address: string | null = null, range: string | null = null) {
    super(range === null ? `address ${reason}` : `address ${address} is in ${range}`);
    this.name = 'AddressRefused';
    this.reason = reason;
    this.address = address;
    this.range = range;
  }
}

/**
 * The addresses of a host name or IP literal, all of them checked: one forbidden address refuses the host. `allow`
 * holds CIDRs exempt from the policy. Connect to one of the answered addresses, never to the name. Throws
 * {@link AddressRefused}.
 */
export async function resolveChecked(host: string, allow: readonly string[], timeoutMs: number): Promise<string[]> {
  const literal = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
  const addresses = isIP(literal) === 0 ? await resolve(literal, timeoutMs) : [literal];
  for (const address of addresses) {
    const range = specialRange(address);
    if (range !== null && !isAllowed(address, allow)) throw new AddressRefused('forbidden', address, range);
  }
  return addresses;
}

async function resolve(name: string, timeoutMs: number): Promise<string[]> {
  const timer = Promise.withResolvers<never>();
  const handle = setTimeout(() => timer.reject(new AddressRefused('timeout')), timeoutMs);
  try {
    const answers = await Promise.race([lookup(name, { all: true }), timer.promise]);
    if (answers.length === 0 || answers.length > MAX_ADDRESSES) throw new AddressRefused('unresolvable');
    return answers.map(({ address }) => address);
  } catch (error) {
    throw error instanceof AddressRefused ? error : new AddressRefused('unresolvable');
  } finally {
    clearTimeout(handle);
  }
}

function withoutZone(address: string): string {
  return address.split('%')[0] as string;
}
