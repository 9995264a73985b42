// Packets between console processes are sealed and taken once: whoever can read or write Redis but does not know the
// master key learns nothing of a call, can call nothing, and cannot send again what it has heard.
//
//   encrypted:  opening of packet-cipher.ts, header, body encrypted with its tag
//   signed:     seal of packet-seal.ts, header, body
//   header:     sender (16 bytes, one for each start of a process), count (8), time in ms (8)
//
// Both are of the topic, too, and a process has a topic of its own with each start: what was said to one before says
// nothing to another. Processes of the release before understand signed packets only.
import { type KeyObject, randomBytes } from 'node:crypto';
import { decrypt, encrypt, type PacketCipher, type StartKey } from './packet-cipher.ts';
import type { PacketSeal } from './packet-seal.ts';

/** What a process tells the others about the packets it understands; 2: encrypted ones. */
export const PACKETS = 2;

const SENDER_BYTES = 16;
const HEADER_BYTES = SENDER_BYTES + 16;
/** How far clocks of processes may differ; a sender is remembered for twice that after its last packet. */
const WINDOW_MS = 5 * 60_000;

interface Heard {
  count: bigint;
  at: number;
  /** Of its encrypted packets; null until the first one came. */
  key: KeyObject | null;
}

interface Opened {
  header: Buffer;
  body: Buffer;
  key: KeyObject | null;
}

export class PacketGuard {
  readonly #seal: PacketSeal;
  readonly #cipher: PacketCipher;
  readonly #sender = randomBytes(SENDER_BYTES);
  readonly #start: StartKey;
  #count = 0n;
  /** By sender, those that proved themselves only: strangers add none. */
  readonly #heard = new Map<string, Heard>();
  #prunedAt = 0;

  constructor(seal: PacketSeal, cipher: PacketCipher) {
    this.#seal = seal;
    this.#cipher = cipher;
    this.#start = cipher.startKey(this.#sender);
  }

  /** The packet to publish under the topic. Packets must be published in the order in which they are made. */
  wrap(topic: string, body: Uint8Array, form: 'encrypted' | 'signed', now = Date.now()): Buffer {
    const count = ++this.#count;
    const header = Buffer.alloc(HEADER_BYTES);
    this.#sender.copy(header);
    header.writeBigUInt64BE(count, SENDER_BYTES);
    header.writeBigUInt64BE(BigInt(now), SENDER_BYTES + 8);
    if (form === 'signed') return Buffer.concat([this.#seal.seal([topic, header, body]), header, body]);
    const { key, opening } = this.#start;
    return Buffer.concat([opening, header, encrypt(key, count, [topic, opening, header], body)]);
  }

  /** The body of a packet that came under the topic; null for one that nobody with the key made now, or that came before. */
  unwrap(topic: string, packet: Buffer, now = Date.now()): Buffer | null {
    const opened = this.#decrypted(topic, packet) ?? this.#proven(topic, packet);
    if (!opened) return null;
    const { header, body, key } = opened;
    const at = Number(header.readBigUInt64BE(SENDER_BYTES + 8));
    if (Math.abs(now - at) > WINDOW_MS) return null;
    const sender = senderOf(header);
    const count = header.readBigUInt64BE(SENDER_BYTES);
    const before = this.#heard.get(sender);
    if (count <= (before?.count ?? 0n)) return null;
    this.#heard.set(sender, { count, at: now, key: key ?? before?.key ?? null });
    this.#prune(now);
    return body;
  }

  /** Senders it remembers. */
  get remembered(): number {
    return this.#heard.size;
  }

  #decrypted(topic: string, packet: Buffer): Opened | null {
    const length = this.#cipher.lengthAt(packet);
    if (length === 0 || packet.length < length + HEADER_BYTES) return null;
    const opening = packet.subarray(0, length);
    const header = packet.subarray(length, length + HEADER_BYTES);
    const known = this.#heard.get(senderOf(header))?.key;
    const key = known ?? this.#cipher.keyOf(opening, header.subarray(0, SENDER_BYTES));
    if (!key) return null;
    const count = header.readBigUInt64BE(SENDER_BYTES);
    const body = decrypt(key, count, [topic, opening, header], packet.subarray(length + HEADER_BYTES));
    return body && { header, body, key };
  }

  #proven(topic: string, packet: Buffer): Opened | null {
    const length = this.#seal.lengthAt(packet);
    if (length === 0 || packet.length < length + HEADER_BYTES) return null;
    const header = packet.subarray(length, length + HEADER_BYTES);
    const body = packet.subarray(length + HEADER_BYTES);
    if (!this.#seal.proves(packet.subarray(0, length), [topic, header, body])) return null;
    return { header, body, key: null };
  }

  #prune(now: number): void {
    if (now - this.#prunedAt < WINDOW_MS) return;
    this.#prunedAt = now;
    for (const [sender, { at }] of this.#heard) if (now - at > 2 * WINDOW_MS) this.#heard.delete(sender);
  }
}

function senderOf(header: Buffer): string {
  return header.toString('latin1', 0, SENDER_BYTES);
}
