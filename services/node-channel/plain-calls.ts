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
import { ReportLogsRequestSchema } from '../../proto/gen/svc/node/v1/logs_pb.js';
import { NodeService, ReportStatsRequestSchema } from '../../proto/gen/svc/node/v1/node_pb.js';
import type { Allowance } from './budgets.ts';
import type { Exchange } from './exchange.ts';
import type { Caller } from './unary.ts';

export const PLAIN_TYPE = 'application/proto';

const compress = promisify(gzip);

type Methods = typeof NodeService.method;
type UnaryName = Exclude<keyof Methods, 'watch'>;

/** What a call gets; counts and rows of logs come as they arrived: other threads decode them. */
type Request<K extends UnaryName> =
  | MessageShape<Methods[K]['input']>
  | (K extends 'reportStats' | 'reportLogs' ? Uint8Array : never);

/** What a call does, by name; errors are ConnectErrors. */
export type Calls = {
  [K in Exclude<UnaryName, 'enroll'>]: (
    request: Request<K>,
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
export function isPlain({ headers }: Exchange): boolean {
  const { 'content-type': type, 'content-encoding': encoding } = headers;
  return type === PLAIN_TYPE && (encoding === undefined || encoding === 'identity');
}

export interface PlainLimits {
  maxBytes: number;
  compressMinBytes: number;
}

const METHODS = new Map(NodeService.methods.map((method) => [method.name, method]));
const PLAIN_HEADERS = { 'content-type': PLAIN_TYPE };

/** Serves a call by the procedure's path name (`Heartbeat`). `asConnectError` maps what the call throws. */
export async function servePlain(
  name: string,
  calls: Calls,
  caller: Caller,
  exchange: Exchange,
  limits: PlainLimits,
  asConnectError: (error: unknown, name: string) => ConnectError,
): Promise<void> {
  const method = METHODS.get(name)!;
  try {
    const body = await readBody(exchange, limits.maxBytes, caller.allowance);
    const call = calls[method.localName as keyof Calls] as (message: unknown, caller: Caller) => unknown;
    const output = await call(decode(method.input, body), caller);
    const bytes = toBinary(
      method.output,
      create(method.output as DescMessage, output as MessageInitShape<DescMessage>),
    );
    caller.allowance.send(bytes.length);
    await answer(exchange, bytes, limits.compressMinBytes);
  } catch (error) {
    if (exchange.over) return;
    const { code, rawMessage } = asConnectError(error, name);
    const problem = Buffer.from(JSON.stringify({ code: codeToString(code), message: rawMessage }));
    exchange.reply(STATUS[code] ?? 500, { 'content-type': 'application/json' }, problem);
  }
}

function decode(schema: DescMessage, body: Uint8Array): unknown {
  if (schema === ReportStatsRequestSchema || schema === ReportLogsRequestSchema) return body;
  try {
    return fromBinary(schema, body);
  } catch {
    throw new ConnectError('the message cannot be decoded', Code.InvalidArgument);
  }
}

async function answer(exchange: Exchange, bytes: Uint8Array, compressMinBytes: number): Promise<void> {
  if (bytes.length < compressMinBytes || !`${exchange.headers['accept-encoding'] ?? ''}`.includes('gzip')) {
    exchange.reply(200, PLAIN_HEADERS, bytes);
    return;
  }
  exchange.reply(200, { ...PLAIN_HEADERS, 'content-encoding': 'gzip' }, await compress(bytes));
}

function readBody(exchange: Exchange, maxBytes: number, allowance: Allowance): Promise<Uint8Array> {
  const { body } = exchange;
  // A request without a body ends before anybody listens.
  if (body.readableEnded) return Promise.resolve(new Uint8Array());
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  let chunks: Buffer[] | null = [];
  let size = 0;
  body.on('data', (chunk: Buffer) => {
    if (!chunks) return;
    size += chunk.length;
    try {
      if (size > maxBytes) {
        throw new ConnectError(`the message is larger than ${maxBytes} bytes`, Code.ResourceExhausted);
      }
      allowance.receive(chunk.length);
      chunks.push(chunk);
    } catch (error) {
      // What is still to come is dropped as it arrives; the call's time limit ends it.
      chunks = null;
      reject(error);
    }
  });
  let ended = false;
  body.once('end', () => {
    ended = true;
    if (chunks) resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks));
  });
  exchange.onClose(() => {
    if (!ended) reject(new ConnectError('the connection was closed during the call', Code.Canceled));
  });
  return promise;
}
