// Frames of the Watch stream: Connect envelopes (flags, u32 length, message) ready to be written to any number of
// streams. A batch is framed once; the same bytes go to every node.
import { create, toBinary } from '@bufbuild/protobuf';
import { type WatchEvent, WatchEventSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';

const ENVELOPE_BYTES = 5;
const END_STREAM_FLAG = 0b10;
/** Wire type of a field of bytes. */
const LENGTH_DELIMITED = 2;

/** A frame of one event. */
export function eventFrame(event: WatchEvent['event']): Buffer {
  return envelope(0, toBinary(WatchEventSchema, create(WatchEventSchema, { event })));
}

/** A frame around an encoded batch of a feed; `event` is the field of WatchEvent that carries it. */
export function batchFrame(event: number, value: Uint8Array): Buffer {
  const head = [...varint((event << 3) | LENGTH_DELIMITED), ...varint(value.length)];
  const size = head.length + value.length;
  const frame = Buffer.allocUnsafe(ENVELOPE_BYTES + size);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(size, 1);
  frame.set(head, ENVELOPE_BYTES);
  frame.set(value, ENVELOPE_BYTES + head.length);
  return frame;
}

/** The last frame of a stream; with a code, the reason why it ends. */
export function endFrame(error?: { code: string; message: string }): Buffer {
  return envelope(END_STREAM_FLAG, Buffer.from(JSON.stringify(error ? { error } : {})));
}

function envelope(flags: number, message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(ENVELOPE_BYTES + message.length);
  frame.writeUInt8(flags, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, ENVELOPE_BYTES);
  return frame;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  bytes.push(rest);
  return bytes;
}
