import { fail } from '../../contract/errors.ts';
import { MIN_PREFIX } from '../../contract/resources/bans.ts';
import { type Cidr, overlaps, parseCidr } from '../../contract/scalars/cidr.ts';

/** Loopback and unspecified addresses: a ban of them would cut a node off from itself. */
const NEVER_BANNED = ['127.0.0.0/8', '::1/128', '0.0.0.0/8', '::/128'].map((text) => ({
  text,
  cidr: parseCidr(text)!,
}));

/** The address or range to ban. Throws BAN_INVALID_CIDR, BAN_PREFIX_TOO_SHORT. */
export function parseBanAddress(text: string): Cidr {
  const cidr = parseCidr(text) ?? fail('BAN_INVALID_CIDR');
  const min = MIN_PREFIX[cidr.family];
  if (cidr.prefix < min) fail('BAN_PREFIX_TOO_SHORT', { min });
  return cidr;
}

/** The loopback or unspecified range that the ban would touch; null when it touches none. */
export function neverBannedIn(cidr: Cidr): string | null {
  return NEVER_BANNED.find((range) => overlaps(range.cidr, cidr))?.text ?? null;
}
