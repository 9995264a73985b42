// An origin as people write one: an address, host:port, or a whole URL. Pure.
import { normaliseOriginAddress } from '../../../../../contract/scalars/origin-address.ts';

export interface OriginText {
  address: string;
  scheme: 'http' | 'https';
  port?: number;
}

/** The origin meant by a text; null when it is none. A path is not part of an origin and makes it none. */
export function readOrigin(text: string): OriginText | null {
  const match = /^(?:(https?):\/\/)?(?:\[([0-9a-f:.]+)\]|([^/:[\]\s]+)|([0-9a-f:.]+))(?::([0-9]{1,5}))?\/?$/i.exec(
    text.trim(),
  );
  if (!match) return null;
  const [, scheme, bracketed, name, bare, portText] = match;
  const address = normaliseOriginAddress((bracketed ?? name ?? bare) as string);
  const port = portText === undefined ? undefined : Number(portText);
  if (address === null || (port !== undefined && (port < 1 || port > 65_535))) return null;
  return {
    address,
    scheme: scheme?.toLowerCase() === 'https' || (scheme === undefined && port === 443) ? 'https' : 'http',
    ...(port === undefined ? {} : { port }),
  };
}

/** The text an origin is written as. */
export function originText({ scheme, address, port }: { scheme: string; address: string; port: number }): string {
  return `${scheme}://${address.includes(':') ? `[${address}]` : address}:${port}`;
}
