// Connections that have not authenticated: a bounded number of them, each for a few seconds. Where there is no room, the
// oldest one of the network with the most of them ends, so that a newcomer always gets its few seconds, and a flood from
// many connections ends its own. Networks from which a node came before count for less.
import type { Socket } from 'node:net';
import { Counter } from 'prom-client';
import { countedAddress } from '../../contract/scalars/cidr.ts';
import type { Runtime } from '../../runtime/runtime.ts';

const MOST = 2_000;
const LIMIT_MS = 5_000;
/** A call that costs a transaction ends with its answer, also after the limit. */
const LONGEST_HELD_MS = 60_000;
/** Connections from a familiar network count as one of this many. */
const FAMILIAR = 100;
const MOST_FAMILIAR = 20_000;
/** An agent uses one or two; further ones of a node stay strangers. */
const MOST_OF_A_NODE = 64;

interface Stranger {
  socket: Socket;
  network: string;
  since: number;
  held: boolean;
}

type Peer = Pick<Socket, 'remoteAddress' | 'remotePort'>;

export class Strangers {
  readonly #most: number;
  readonly #limitMs: number;
  /** By address and port, in the order of their arrival. */
  readonly #byPeer = new Map<string, Stranger>();
  readonly #byNetwork = new Map<string, Set<Stranger>>();
  readonly #familiar = new Set<string>();
  readonly #ofNodes = new Map<string, number>();
  readonly #ended: Counter<'reason'>;
  readonly #sweep: NodeJS.Timeout;

  constructor({ metrics }: Pick<Runtime, 'metrics'>, most = MOST, limitMs = LIMIT_MS) {
    this.#most = most;
    this.#limitMs = limitMs;
    this.#ended = new Counter({
      name: 'svc_node_channel_strangers_ended_total',
      help: 'Connections to the node channel ended because they did not authenticate, by reason.',
      labelNames: ['reason'],
      registers: [metrics],
    });
    this.#sweep = setInterval(() => this.#endLate(), Math.min(1_000, limitMs / 5));
    // A start that fails stops nothing, and its process must end all the same.
    this.#sweep.unref();
  }

  stop(): void {
    clearInterval(this.#sweep);
  }

  get size(): number {
    return this.#byPeer.size;
  }

  /** A connection of which nothing is known yet, or not any more. */
  add(socket: Socket): void {
    const key = peerKey(socket);
    if (socket.destroyed || socket.remoteAddress === undefined || this.#byPeer.has(key)) return;
    const network = countedAddress(socket.remoteAddress);
    const stranger = { socket, network, since: performance.now(), held: false };
    this.#byPeer.set(key, stranger);
    const others = this.#byNetwork.get(network);
    if (others) others.add(stranger);
    else this.#byNetwork.set(network, new Set([stranger]));
    socket.once('close', () => {
      if (this.#byPeer.get(key) === stranger) this.#remove(key, stranger);
    });
    if (this.#byPeer.size > this.#most) this.#end(this.#oldestOfHeaviest(), 'room');
  }

  /** The connection belongs to a node, or to a machine that became one just now. */
  known(peer: Pick<Socket, 'remoteAddress' | 'remotePort' | 'once'>, nodeId: string): void {
    const key = peerKey(peer);
    const stranger = this.#byPeer.get(key);
    const count = this.#ofNodes.get(nodeId) ?? 0;
    if (!stranger || count >= MOST_OF_A_NODE) return;
    this.#remove(key, stranger);
    this.#ofNodes.set(nodeId, count + 1);
    peer.once('close', () => {
      const left = this.#ofNodes.get(nodeId)! - 1;
      if (left > 0) this.#ofNodes.set(nodeId, left);
      else this.#ofNodes.delete(nodeId);
    });
    if (this.#familiar.size < MOST_FAMILIAR) this.#familiar.add(stranger.network);
  }

  /** Lets the connection live until a call of it is answered, which the function returned says. */
  hold(peer: Peer): () => void {
    const stranger = this.#byPeer.get(peerKey(peer));
    if (stranger) stranger.held = true;
    return () => {
      if (stranger) stranger.held = false;
    };
  }

  #endLate(): void {
    const now = performance.now();
    for (const stranger of [...this.#byPeer.values()]) {
      const age = now - stranger.since;
      // In the order of their arrival.
      if (age <= this.#limitMs) return;
      if (!stranger.held || age > LONGEST_HELD_MS) this.#end(stranger, 'time');
    }
  }

  #oldestOfHeaviest(): Stranger {
    let heaviest: Set<Stranger> | undefined;
    let most = 0;
    for (const [network, strangers] of this.#byNetwork) {
      const weight = this.#familiar.has(network) ? strangers.size / FAMILIAR : strangers.size;
      if (weight <= most) continue;
      most = weight;
      heaviest = strangers;
    }
    const [oldest] = heaviest!;
    return oldest!;
  }

  #end(stranger: Stranger, reason: 'room' | 'time'): void {
    this.#remove(peerKey(stranger.socket), stranger);
    this.#ended.inc({ reason });
    // The handshake or the parser on it hears of its end.
    stranger.socket.on('error', () => undefined);
    stranger.socket.destroy();
  }

  #remove(key: string, stranger: Stranger): void {
    this.#byPeer.delete(key);
    const others = this.#byNetwork.get(stranger.network);
    others?.delete(stranger);
    if (others?.size === 0) this.#byNetwork.delete(stranger.network);
  }
}

function peerKey({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
