// Whose request it is, by address: the peer of the connection, or what trusted reverse proxies in front of it say.
import type { IncomingMessage } from 'node:http';
import { type Cidr, formatAddress } from '../../contract/scalars/cidr.ts';
import { trustedProxies as isTrustedProxy, plainAddress } from '../../runtime/trusted-proxies.ts';

/** Answers the client's address of a request, in canonical form; null when the connection is gone. */
export type ClientAddress = (request: IncomingMessage) => string | null;

/** Anybody can send the header: what is remembered of such peers, and logged about them, has an end. */
const MOST_NOTED = 100;
/** Peers are few and come back with every request of their connections. */
const MOST_PEERS = 1_000;

interface Peer {
  address: Cidr;
  text: string;
  trusted: boolean;
}

/** `onUntrusted` is told once of each peer whose X-Forwarded-For is not believed. */
export function clientAddressReader(
  trustedProxies: readonly string[],
  onUntrusted: (peer: string) => void = () => undefined,
): ClientAddress {
  const isTrusted = isTrustedProxy(trustedProxies);
  const noted = new Set<string>();
  const note = (peer: string) => {
    if (noted.has(peer) || noted.size >= MOST_NOTED) return;
    noted.add(peer);
    onUntrusted(peer);
  };
  const peers = new Map<string, Peer>();
  const peerOf = (remote: string): Peer | null => {
    const known = peers.get(remote);
    if (known !== undefined) return known;
    const address = plainAddress(remote);
    if (address === null) return null;
    if (peers.size >= MOST_PEERS) peers.clear();
    const peer = { address, text: formatAddress(address), trusted: isTrusted(address) };
    peers.set(remote, peer);
    return peer;
  };
  return (request) => {
    const peer = peerOf(request.socket.remoteAddress ?? '');
    if (peer === null) return null;
    const forwarded = request.headers['x-forwarded-for'];
    if (!peer.trusted) {
      if (forwarded !== undefined) note(peer.text);
      return peer.text;
    }
    if (forwarded === undefined) {
      const told = plainAddress(String(request.headers['x-real-ip'] ?? '').trim());
      return told === null ? peer.text : formatAddress(told);
    }
    return formatAddress(walk(String(forwarded).split(','), peer.address, isTrusted));
  };
}

/** From the right past trusted proxies; what is no address ends the walk at the last hop known. */
function walk(entries: readonly string[], peer: Cidr, isTrusted: (address: Cidr) => boolean): Cidr {
  let last = peer;
  for (let index = entries.length - 1; index >= 0; index--) {
    const address = plainAddress(entries[index]!.trim());
    if (address === null) return last;
    last = address;
    if (!isTrusted(address)) return last;
  }
  return last;
}
