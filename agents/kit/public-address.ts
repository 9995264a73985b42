// Which addresses an agent connects to on the word of somebody else: public ones only. A name is resolved once, every address
// of it is checked, and the caller connects to a checked one, so that a second answer of the resolver changes nothing.
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';

const SPECIAL = [
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
];
/** All that is handed out to anybody lies in here. */
const GLOBAL_UNICAST = '2000::/3';
/** Of it, what is not public, or may end up at an IPv4 address inside. */
const SPECIAL_IN_IT = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];
const MAX_ADDRESSES = 32;

function listOf(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network, bits] = range.split('/') as [string, string];
    list.addSubnet(network, Number(bits), family);
  }
  return list;
}

const V4 = listOf(SPECIAL, 'ipv4');
const V6_GLOBAL = listOf([GLOBAL_UNICAST], 'ipv6');
const V6 = listOf(SPECIAL_IN_IT, 'ipv6');

/** Whether an address is one that the public internet routes. False for anything that is no address. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !V4.check(address, 'ipv4');
  return family === 6 && V6_GLOBAL.check(address, 'ipv6') && !V6.check(address, 'ipv6');
}

/** An address of a host, all of which are public. Throws when one is not, and when there is none within `timeoutMs`. */
export async function resolvePublic(host: string, timeoutMs: number): Promise<string> {
  const literal = host.replace(/^\[|\]$/g, '');
  const addresses = isIP(literal) === 0 ? await resolve(literal, timeoutMs) : [literal];
  const refused = addresses.find((address) => !isPublicAddress(address));
  if (refused !== undefined) throw new Error(`${refused} is no public address`);
  return addresses[0]!;
}

async function resolve(name: string, timeoutMs: number): Promise<string[]> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${name} is not resolved in time`)), timeoutMs);
  try {
    const answers = await Promise.race([lookup(name, { all: true }), late.promise]);
    if (answers.length === 0 || answers.length > MAX_ADDRESSES)
      throw new Error(`${name} has ${answers.length} addresses`);
    return answers.map(({ address }) => address);
  } finally {
    clearTimeout(timer);
  }
}
