// Packets between console processes carry a seal and are taken once: whoever can write to Redis but does not know the
// master key can call nothing, and cannot send again what it has heard.
//
//   packet:  seal, sender (16 bytes, one for each start of a process), count (8), time in ms (8), body
//
// The seal is of the topic, too, and a process has a topic of its own with each start: what was said to one before says
// nothing to another.
import { randomBytes } from 'node:crypto';
import type { PacketSeal } from './packet-seal.ts';

const SENDER_BYTES = 16;
const HEADER_BYTES = SENDER_BYTES + 16;
/** How far clocks of processes may differ; a sender is remembered for twice that after its last packet. */
const WINDOW_MS = 5 * 60_000;

interface Heard {
  count: bigint;
  at: number;
}

export class PacketGuard {
  readonly #seal: PacketSeal;
  readonly #sender = randomBytes(SENDER_BYTES);
  #count = 0n;
  /** By sender, those that proved themselves only: strangers add none. */
  readonly #heard = new Map<string, Heard>();
  #prunedAt = 0;

  constructor(seal: PacketSeal) {
    this.#seal = seal;
  }

  /** The packet to publish under the topic. Packets must be published in the order in which they are made. */
  wrap(topic: string, body: Uint8Array, now = Date.now()): Buffer {
    const header = Buffer.alloc(HEADER_BYTES);
    this.#sender.copy(header);
    header.writeBigUInt64BE(++this.#count, SENDER_BYTES);
    header.writeBigUInt64BE(BigInt(now), SENDER_BYTES + 8);
    return Buffer.concat([this.#seal.seal([topic, header, body]), header, body]);
  }

  /** The body of a packet that came under the topic; null for one that nobody with the key made now, or that came before. */
  unwrap(topic: string, packet: Buffer, now = Date.now()): Buffer | null {
    const sealed = this.#seal.lengthAt(packet);
    if (sealed === 0 || packet.length < sealed + HEADER_BYTES) return null;
    const header = packet.subarray(sealed, sealed + HEADER_BYTES);
    const body = packet.subarray(sealed + HEADER_BYTES);
    if (!this.#seal.proves(packet.subarray(0, sealed), [topic, header, body])) return null;
    const at = Number(header.readBigUInt64BE(SENDER_BYTES + 8));
    if (Math.abs(now - at) > WINDOW_MS) return null;
    const sender = header.toString('latin1', 0, SENDER_BYTES);
    const count = header.readBigUInt64BE(SENDER_BYTES);
    if (count <= (this.#heard.get(sender)?.count ?? 0n)) return null;
    this.#heard.set(sender, { count, at: now });
    this.#prune(now);
    return body;
  }

  /** Senders it remembers. */
  get remembered(): number {
    return this.#heard.size;
  }

  #prune(now: number): void {
    if (now - this.#prunedAt < WINDOW_MS) return;
    this.#prunedAt = now;
    for (const [sender, { at }] of this.#heard) if (now - at > 2 * WINDOW_MS) this.#heard.delete(sender);
  }
}
