// Addresses of DNS servers as people write them: host, host:port, [IPv6]:port.
import { isIP } from 'node:net';
import { normaliseHostName } from '../../../contract/scalars/host-name.ts';

export interface ServerAddress {
  /** A host name in lower case, or an IP address without brackets. */
  host: string;
  port: number;
}

const DNS_PORT = 53;
const BRACKETED = /^\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?$/;
const PLAIN = /^([^:[\]]+)(?::([0-9]{1,5}))?$/;

/** Null for a text that is none. */
export function parseServerAddress(text: string): ServerAddress | null {
  if (isIP(text) === 6) return { host: text, port: DNS_PORT };
  const bracketed = BRACKETED.exec(text);
  const [, given = '', digits] = bracketed ?? PLAIN.exec(text) ?? [];
  const port = digits === undefined ? DNS_PORT : Number(digits);
  const host = hostOf(given, bracketed !== null);
  return host === null || port < 1 || port > 65_535 ? null : { host, port };
}

function hostOf(text: string, bracketed: boolean): string | null {
  if (bracketed) return isIP(text) === 6 ? text : null;
  return isIP(text) === 4 ? text : normaliseHostName(text);
}

/** As resolvers take it. */
export function formatServerAddress({ host, port }: ServerAddress): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
