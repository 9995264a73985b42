// Where everything about an address is shown.
import { formatAddress, formatCidr, isSingleAddress, parseCidr } from '../../../../contract/scalars/cidr.ts';

/** The page of an address or range; null for what is neither. */
export function addressPath(text: string): string | null {
  const cidr = parseCidr(text.trim());
  if (!cidr) return null;
  return `/addresses/${isSingleAddress(cidr) ? formatAddress(cidr) : formatCidr(cidr)}`;
}
