// Which peers are reverse proxies of the operator's own (SVC_TRUSTED_PROXIES): what they forward is believed, and their
// connections are many people's.
import { BlockList } from 'node:net';
import { type Cidr, formatAddress, parseAddress, parseCidr } from '../contract/scalars/cidr.ts';

/** Whether an address is one of the entries, which are addresses and CIDRs. */
export function trustedProxies(entries: readonly string[]): (address: Cidr) => boolean {
  const trusted = new BlockList();
  for (const entry of entries) {
    const range = parseCidr(entry);
    if (!range) throw new Error(`${entry} is not an IP address or CIDR`);
    trusted.addSubnet(formatAddress(range), range.prefix, familyOf(range));
  }
  return (address) => entries.length > 0 && trusted.check(formatAddress(address), familyOf(address));
}

/** The address of a peer without a zone; null when it is none. */
export function plainAddress(text: string): Cidr | null {
  const zone = text.indexOf('%');
  return parseAddress(zone === -1 ? text : text.slice(0, zone));
}

function familyOf({ family }: Cidr): 'ipv4' | 'ipv6' {
  return family === 4 ? 'ipv4' : 'ipv6';
}
