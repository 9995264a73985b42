import type { Bytes } from '../evaluate/bytes.ts';
import type { RunRequest } from '../run/request.ts';
import { linesOf } from './header-lines.ts';

/** What origins get in a field, by its name in lower case, where no rule changes it; null for none. */
export function sentTo({ headers, scheme, port, host, address, peer, id }: RunRequest, name: string): Bytes | null {
  switch (name) {
    case 'host':
    case 'x-forwarded-host':
      return host;
    case 'x-forwarded-proto':
      return scheme;
    case 'x-forwarded-port':
      return String(port);
    case 'x-real-ip':
      return address;
    case 'x-forwarded-for':
      return [...(linesOf(headers, name) ?? []), peer].join(', ');
    case 'x-request-id':
      return id;
    case 'forwarded':
      return null;
    default:
      return linesOf(headers, name)?.join(', ') ?? null;
  }
}
