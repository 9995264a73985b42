// Whose request it is, by address: the peer of the connection, or what trusted reverse proxies in front of it say.
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** Answers the client's address of a request; null when the connection is gone. */
export type ClientAddress = (request: IncomingMessage) => string | null;

export function clientAddressReader(trustedProxies: readonly string[]): ClientAddress {
  if (trustedProxies.length === 0) return (request) => plainAddress(request.socket.remoteAddress ?? '');
  const trusted = new BlockList();
  for (const entry of trustedProxies) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    trusted.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family);
  }
  const isTrusted = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return (request) => {
    const peer = plainAddress(request.socket.remoteAddress ?? '');
    if (peer === null || !isTrusted(peer)) return peer;
    const forwarded = request.headers['x-forwarded-for'];
    if (forwarded === undefined) return plainAddress(String(request.headers['x-real-ip'] ?? '').trim()) ?? peer;
    return walk(String(forwarded).split(','), peer, isTrusted);
  };
}

/** From the right past trusted proxies; what is no address ends the walk at the last hop known. */
function walk(entries: readonly string[], peer: string, isTrusted: (address: string) => boolean): string {
  let last = peer;
  for (let index = entries.length - 1; index >= 0; index--) {
    const address = plainAddress(entries[index]!.trim());
    if (address === null) return last;
    last = address;
    if (!isTrusted(address)) return last;
  }
  return last;
}

/** The address without an IPv4-in-IPv6 wrapping or zone; null when it is none. */
function plainAddress(text: string): string | null {
  const zone = text.indexOf('%');
  const address = zone === -1 ? text : text.slice(0, zone);
  const family = isIP(address);
  if (family === 0) return null;
  const wrapped = /^::ffff:([0-9.]+)$/i.exec(address);
  return wrapped && isIP(wrapped[1]!) === 4 ? wrapped[1]! : address;
}
