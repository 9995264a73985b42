// Messages of Connect's streaming protocol: [flags][u32 big-endian length][payload], the last one with the end-stream flag.

const HEADER_BYTES = 5;
const END_STREAM_FLAG = 0b10;

export interface Envelope {
  /** The last one: its payload is JSON and says how the stream ended. */
  last: boolean;
  payload: Buffer;
}

/** A message as it stands in the stream. */
export function encodeEnvelope(message: Uint8Array): Buffer {
  const envelope = Buffer.alloc(HEADER_BYTES + message.length);
  envelope.writeUInt32BE(message.length, 1);
  envelope.set(message, HEADER_BYTES);
  return envelope;
}

/** Cuts a stream of bytes into its messages. */
export class EnvelopeReader {
  private readonly maxBytes: number;
  private rest: Buffer = Buffer.alloc(0);

  constructor(maxBytes = Number.POSITIVE_INFINITY) {
    this.maxBytes = maxBytes;
  }

  /** The messages that are complete with this chunk; they share its memory. Throws when one is too large. */
  push(chunk: Buffer): Envelope[] {
    const found: Envelope[] = [];
    let buffer = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    while (buffer.length >= HEADER_BYTES) {
      const length = buffer.readUInt32BE(1);
      if (length > this.maxBytes) throw new RangeError(`a message of ${length} bytes is too large`);
      const end = HEADER_BYTES + length;
      if (buffer.length < end) break;
      found.push({ last: (buffer[0]! & END_STREAM_FLAG) !== 0, payload: buffer.subarray(HEADER_BYTES, end) });
      buffer = buffer.subarray(end);
    }
    // A copy: a slice would keep the whole chunk alive while the stream is idle.
    this.rest = buffer.length === 0 ? Buffer.alloc(0) : Buffer.from(buffer);
    return found;
  }
}
