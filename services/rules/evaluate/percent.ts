// Percent-encoding as the edge does it: over bytes, with upper-case hex.
import type { Bytes } from './bytes.ts';

const encoded = (byte: string) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** Every byte that is not unreserved (RFC 3986, section 2.3). */
export function encodeComponent(value: Bytes): Bytes {
  return value.replace(/[^A-Za-z0-9\-._~]/g, encoded);
}

/** Every byte that cannot stand in a path; a percent sign is a byte like others. */
export function encodePath(path: Bytes): Bytes {
  return path.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/]/g, encoded);
}

/** Every byte that cannot stand in a query; what is encoded stays. */
export function encodeQuery(query: Bytes): Bytes {
  return query.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]/g, encoded);
}

/** Every byte that is not ASCII, as the header Location has it. */
export function encodeLocation(location: Bytes): Bytes {
  return location.replace(/[\u0080-\u00ff]/g, encoded);
}
