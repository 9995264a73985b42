import { parseAddress } from './cidr.ts';
import { normaliseHostName } from './host-name.ts';

/** Longest host header of an origin, in bytes: a name of 253, a colon and a port. */
export const MAX_HOST_HEADER_BYTES = 259;

const PORT = /^[1-9][0-9]{0,4}$/;

/**
 * Canonical host header of an origin: "" (the request's own), a host name (Unicode becomes punycode) or an IP address, with
 * an optional port. IPv6 has brackets with a port and none without. Null when it is none of these.
 */
export function normaliseHostHeader(text: string): string | null {
  if (text === '') return '';
  if (text.length > MAX_HOST_HEADER_BYTES) return null;
  if (text.startsWith('[')) {
    const match = /^\[([0-9a-fA-F:.]+)\]:([0-9]+)$/.exec(text);
    return match && isV6(match[1]!) && isPort(match[2]!) ? `[${match[1]!.toLowerCase()}]:${match[2]}` : null;
  }
  if (isV6(text)) return text.toLowerCase();
  const [host, port, ...rest] = text.split(':');
  if (rest.length > 0 || (port !== undefined && !isPort(port))) return null;
  const name = parseAddress(host!) ? host! : normaliseHostName(host!);
  if (name === null) return null;
  return port === undefined ? name : `${name}:${port}`;
}

function isV6(text: string): boolean {
  return text.includes(':') && parseAddress(text) !== null;
}

function isPort(text: string): boolean {
  return PORT.test(text) && Number(text) <= 65_535;
}
