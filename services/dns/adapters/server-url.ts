// URLs of servers that operators name.
import { isIP } from 'node:net';
import { isAllowed } from '../../../proto/address-policy.ts';
import { PRIVATE_RANGES } from '../../../runtime/outbound.ts';

/** Null for a text that is none; `insecure`: http is for addresses of private networks alone, or anybody could read along. */
export function serverUrl(text: string): URL | 'insecure' | null {
  const url = URL.parse(text.trim());
  if (url === null || url.username !== '' || url.password !== '' || url.hash !== '') return null;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isPrivate = isIP(host) !== 0 && isAllowed(host, PRIVATE_RANGES);
  return url.protocol === 'https:' || (url.protocol === 'http:' && isPrivate) ? url : 'insecure';
}
