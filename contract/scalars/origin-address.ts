import { formatAddress, parseAddress } from './cidr.ts';
import { normaliseHostName } from './host-name.ts';

/**
 * Canonical address of an origin: an IP literal (IPv6 without brackets) or a host name of any number of labels whose
 * last does not read as a number. Null when it is neither.
 */
export function normaliseOriginAddress(text: string): string | null {
  const literal = parseAddress(text);
  return literal ? formatAddress(literal) : normaliseHostName(text);
}

/** The IP literal an origin names, canonical; null for a host name. */
export function originLiteral(address: string): string | null {
  const literal = parseAddress(address);
  return literal ? formatAddress(literal) : null;
}
