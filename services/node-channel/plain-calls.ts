// Unary calls in the form agents send them: binary messages, uncompressed. They skip the Connect adapter, whose
// general path (web headers, abort signals, async iterables) cost 0.4 ms of CPU a call with 1,000 nodes acknowledging
// every ban. Everything else about a call is the same; other forms take the adapter.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { codeToString } from '@connectrpc/connect/protocol-connect';
import { NodeService } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Caller, Request, Response } from './unary.ts';

export const PLAIN_TYPE = 'application/proto';

const compress = promisify(gzip);

type Methods = typeof NodeService.method;
type UnaryName = Exclude<keyof Methods, 'watch'>;

/** What a call does, by name; errors are ConnectErrors. */
export type Calls = {
  [K in Exclude<UnaryName, 'enroll'>]: (
    request: MessageShape<Methods[K]['input']>,
    caller: Caller,
  ) => Promise<MessageInitShape<Methods[K]['output']>> | MessageInitShape<Methods[K]['output']>;
};

// HTTP statuses of the Connect protocol; what is not listed is 500.
const STATUS: Partial<Record<Code, number>> = {
  [Code.InvalidArgument]: 400,
  [Code.FailedPrecondition]: 400,
  [Code.Unauthenticated]: 401,
  [Code.PermissionDenied]: 403,
  [Code.NotFound]: 404,
  [Code.ResourceExhausted]: 429,
  [Code.Unimplemented]: 501,
  [Code.Unavailable]: 503,
};

/** Whether the request can be served here. */
export function isPlain(request: Request): boolean {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers;
  return type === PLAIN_TYPE && (encoding === undefined || encoding === 'identity');
}

export interface PlainLimits {
  maxBytes: number;
  compressMinBytes: number;
}

/** Serves a call by the procedure's path name (`Heartbeat`). `asConnectError` maps what the call throws. */
export async function servePlain(
  name: string,
  calls: Calls,
  caller: Caller,
  request: Request,
  response: Response,
  limits: PlainLimits,
  asConnectError: (error: unknown, name: string) => ConnectError,
): Promise<void> {
  const method = NodeService.methods.find((candidate) => candidate.name === name)!;
  try {
    const body = await readBody(request, limits.maxBytes);
    const call = calls[method.localName as keyof Calls] as (message: unknown, caller: Caller) => unknown;
    const output = await call(decode(method.input, body), caller);
    const bytes = toBinary(
      method.output,
      create(method.output as DescMessage, output as MessageInitShape<DescMessage>),
    );
    await answer(request, response, bytes, limits.compressMinBytes);
  } catch (error) {
    if (response.destroyed || response.headersSent) return;
    const { code, rawMessage } = asConnectError(error, name);
    response.statusCode = STATUS[code] ?? 500;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ code: codeToString(code), message: rawMessage }));
  }
}

function decode(schema: DescMessage, body: Uint8Array): unknown {
  try {
    return fromBinary(schema, body);
  } catch {
    throw new ConnectError('the message cannot be read', Code.InvalidArgument);
  }
}

async function answer(
  request: Request,
  response: Response,
  bytes: Uint8Array,
  compressMinBytes: number,
): Promise<void> {
  response.setHeader('content-type', PLAIN_TYPE);
  if (bytes.length < compressMinBytes || !`${request.headers['accept-encoding'] ?? ''}`.includes('gzip')) {
    response.end(bytes);
    return;
  }
  const packed = await compress(bytes);
  response.setHeader('content-encoding', 'gzip');
  response.end(packed);
}

function readBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  let chunks: Buffer[] | null = [];
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxBytes) {
      // What is still to come is dropped as it arrives; the call's time limit ends it.
      chunks = null;
      reject(new ConnectError(`the message is larger than ${maxBytes} bytes`, Code.ResourceExhausted));
    } else chunks?.push(chunk);
  });
  request.once('end', () => {
    if (chunks) resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
  });
  const cut = (): void => reject(new ConnectError('the call was cut off', Code.Canceled));
  request.once('aborted', cut);
  request.once('error', cut);
  return promise;
}
