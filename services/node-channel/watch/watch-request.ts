// The request side of Watch in the Connect protocol: content type, one enveloped message, errors before the stream.
import type { Readable } from 'node:stream';
import { fromBinary } from '@bufbuild/protobuf';
import { type WatchRequest, WatchRequestSchema } from '../../../proto/gen/svc/node/v1/node_pb.js';

export const STREAM_TYPE = 'application/connect+proto';
const ENVELOPE_BYTES = 5;
/** A position for each feed: more is no Watch request. */
const MAX_REQUEST_BYTES = 4096;
const READ_MS = 10_000;

/** The request cannot be served; the message is for the node. */
export class BadWatchRequest extends Error {}

/** The one message of the request body. Throws {@link BadWatchRequest}. */
export async function readWatchRequest(body: Readable): Promise<WatchRequest> {
  const bytes = await readBounded(body);
  if (bytes.length < ENVELOPE_BYTES) throw new BadWatchRequest('the request has no message');
  if (bytes.readUInt8(0) !== 0) throw new BadWatchRequest('compressed requests are not supported');
  const length = bytes.readUInt32BE(1);
  if (bytes.length !== ENVELOPE_BYTES + length)
    throw new BadWatchRequest('the request does not contain exactly one message');
  try {
    return fromBinary(WatchRequestSchema, bytes.subarray(ENVELOPE_BYTES));
  } catch {
    throw new BadWatchRequest('the message cannot be decoded');
  }
}

function readBounded(body: Readable): Promise<Buffer> {
  // A request without a body ends before anybody listens.
  if (body.readableEnded) return Promise.resolve(Buffer.alloc(0));
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let size = 0;
  let ended = false;
  const timer = setTimeout(() => reject(new BadWatchRequest('the request did not end in time')), READ_MS);
  body.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_REQUEST_BYTES) reject(new BadWatchRequest('the request is too large'));
    else chunks.push(chunk);
  });
  body.once('end', () => {
    ended = true;
    resolve(Buffer.concat(chunks));
  });
  body.once('error', reject);
  body.once('close', () => {
    if (!ended) reject(new BadWatchRequest('the connection ended'));
  });
  return promise.finally(() => clearTimeout(timer));
}
