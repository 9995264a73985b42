// One node's Watch stream: a cursor for each feed and a wake function. It writes while the connection takes bytes, and otherwise
// remembers nothing.
//
// | state    | trigger                        | next                                          |
// | flowing  | write answered false           | blocked                                       |
// | blocked  | drain                          | flowing, continues at its cursors             |
// | blocked  | for longer than the limit      | ended (connection destroyed)                  |
// | any      | cursor off the ring, new epoch | the next event is a Target: the node pulls    |
import type { Writable } from 'node:stream';
import { create } from '@bufbuild/protobuf';
import { trackColumn } from '../../../models/config/config-history.ts';
import { KeysChangedSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';
import type { PositionReport } from '../../../runtime/feed-wire.ts';
import type { NodeIdentity } from '../identity.ts';
import type { ClusterFeed } from './cluster-feed.ts';
import { endFrame, eventFrame } from './frames.ts';

/** What a stream is written to: an HTTP/2 stream or an HTTP/1.1 response. */
export type Sink = Pick<Writable, 'write' | 'end' | 'destroy' | 'destroyed' | 'once'>;

export class WatchStream {
  readonly node: NodeIdentity;
  readonly #sink: Sink;
  readonly #feed: ClusterFeed;
  readonly #cursors = new Map<string, bigint>();
  #targetDue = true;
  #keysVersion: bigint;
  #ticketKeysVersion: bigint;
  #start: PositionReport | null;
  /** When the connection stopped taking bytes; null while it takes them. */
  #blockedSince: number | null = null;
  #ended = false;

  /** `start`: what the node says it holds. */
  constructor(node: NodeIdentity, sink: Sink, feed: ClusterFeed, start: PositionReport) {
    this.node = node;
    this.#sink = sink;
    this.#feed = feed;
    this.#start = start;
    // A node that connects hears of them in the answer to its heartbeat.
    this.#keysVersion = feed.keysVersion;
    this.#ticketKeysVersion = feed.ticketKeysVersion;
  }

  get blockedSince(): number | null {
    return this.#blockedSince;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The next event is a Target. */
  demandTarget(): void {
    this.#targetDue = true;
  }

  /** Writes what is due until the connection is full. */
  pump(): void {
    while (!this.#ended && this.#blockedSince === null) {
      const frame = this.#nextFrame();
      if (!frame) return;
      this.#write(frame);
    }
  }

  /** Writes a frame that is worthless later, such as a ping; dropped while the connection is full. */
  writeNow(frame: Buffer): void {
    if (!this.#ended && this.#blockedSince === null) this.#write(frame);
  }

  /** Ends the stream with the reason; a full connection is destroyed instead. */
  end(error: { code: string; message: string }): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#blockedSince === null) this.#sink.end(endFrame(error));
    else this.#sink.destroy();
  }

  /** The connection is gone. */
  abandon(): void {
    this.#ended = true;
  }

  #nextFrame(): Buffer | undefined {
    if (this.#targetDue) {
      this.#targetDue = false;
      return this.#placeCursors();
    }
    const keys = this.#changedKeys();
    if (keys) return keys;
    for (const [name, { ring }] of this.#feed.tracks) {
      if (!this.#feed.sends(name, this.node)) {
        this.#cursors.set(name, ring.head);
        continue;
      }
      const batch = ring.next(this.#cursors.get(name)!);
      if (batch === 'lost') return this.#startOver();
      if (!batch) continue;
      this.#cursors.set(name, batch.to);
      return batch.frame;
    }
    return undefined;
  }

  /** Names the keys that changed since the node was told of them. */
  #changedKeys(): Buffer | undefined {
    const { keysVersion, ticketKeysVersion } = this.#feed;
    const version = keysVersion === this.#keysVersion ? 0n : keysVersion;
    const sessionTicketVersion = ticketKeysVersion === this.#ticketKeysVersion ? 0n : ticketKeysVersion;
    this.#keysVersion = keysVersion;
    this.#ticketKeysVersion = ticketKeysVersion;
    if (version === 0n && sessionTicketVersion === 0n) return undefined;
    return eventFrame({ case: 'keysChanged', value: create(KeysChangedSchema, { version, sessionTicketVersion }) });
  }

  #startOver(): Buffer | undefined {
    this.#targetDue = true;
    return this.#nextFrame();
  }

  /**
   * The node's own positions where the rings still hold what follows them, else the heads: then the Target makes it
   * pull. A Target names the positions the stream continues from, so a node that came back does not ask for what is
   * about to be pushed.
   */
  #placeCursors(): Buffer {
    const start = this.#start ?? {};
    const own = this.#feed.configFeedOf(this.node);
    // What it holds of another track is nothing that the feed of its own goes on from.
    const held = start.config;
    const config = held && trackColumn(held.track) === trackColumn(this.#feed.trackOf(this.node)) ? held : undefined;
    this.#start = null;
    const others = [...this.#feed.othersOf(this.node)].map(({ feed: { name, wire } }) => {
      return { name, wire, place: wire.told(start) };
    });
    const places = new Map(others.map(({ name, place }) => [name, place]));
    if (config) places.set(own, { ...config, sequence: config.revision });
    let fromHeads = true;
    for (const [name, track] of this.#feed.tracks) {
      const { epoch, sequence } = places.get(name) ?? {};
      const cursor = track.cursorFor(epoch, sequence);
      this.#cursors.set(name, cursor);
      fromHeads &&= cursor === track.ring.head;
    }
    if (fromHeads || this.#feed.isFrozen(this.node)) return this.#feed.targetFrame(this.node);
    const target = this.#feed.target(Date.now(), this.node);
    if (config && this.#cursors.get(own) === config.revision) target.config = config;
    for (const { name, wire, place } of others)
      if (place && this.#cursors.get(name) === place.sequence) wire.aim?.(target, place);
    return eventFrame({ case: 'target', value: target });
  }

  #write(frame: Buffer): void {
    if (this.#sink.write(frame)) return;
    this.#blockedSince = Date.now();
    this.#sink.once('drain', () => {
      this.#blockedSince = null;
      this.pump();
    });
  }
}
