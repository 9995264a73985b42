// A node's connection to the console, as lean as HTTP/2 allows: one TLS session, Connect calls written by hand. A
// thousand of them fit into one process, which is why the agent's client is not used.
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import {
  create,
  type DescMessage,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from '@bufbuild/protobuf';
import { EnvelopeReader, encodeEnvelope } from '../../agents/kit/envelope.ts';
import { parseServerUrl, pinnedTlsOptions } from '../../agents/kit/pinned-tls.ts';
import { NodeService, WatchRequestSchema } from '../../proto/gen/svc/node/v1/node_pb.js';

const CALL_MS = 30_000;
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;

export interface Identity {
  nodeId: string;
  clusterId: string;
  keyPem: string;
  certificatePem: string;
  authorityPem: string;
}

/** A refusal of the console, or a connection that broke (`code` is 'unavailable' then). */
export class CallRefused extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

type Unary = {
  [K in keyof typeof NodeService.method]: (typeof NodeService.method)[K] extends { methodKind: 'unary' } ? K : never;
}[keyof typeof NodeService.method];

export class Connection {
  readonly #session: ClientHttp2Session;

  /** Opens at once; a failure shows in the first call and in `closed`. Without credentials only Enroll is answered. */
  constructor(serverUrl: string, authorityPem: string, credentials?: { keyPem: string; certificatePem: string }) {
    const server = parseServerUrl(serverUrl);
    this.#session = connect(server.url, {
      ...pinnedTlsOptions(server, authorityPem),
      ...(credentials ? { key: credentials.keyPem, cert: credentials.certificatePem } : {}),
      settings: { enablePush: false },
    });
    // Calls report the failure themselves.
    this.#session.on('error', () => undefined);
  }

  get closed(): boolean {
    return this.#session.closed || this.#session.destroyed;
  }

  onClose(listener: () => void): void {
    this.#session.once('close', listener);
  }

  async call<K extends Unary>(
    name: K,
    message: MessageInitShape<(typeof NodeService.method)[K]['input']>,
  ): Promise<MessageShape<(typeof NodeService.method)[K]['output']>> {
    const input: DescMessage = NodeService.method[name].input;
    return this.callEncoded(name, toBinary(input, create(input, message as MessageInitShape<DescMessage>)));
  }

  /** The same with a message that is encoded already. */
  async callEncoded<K extends Unary>(
    name: K,
    body: Uint8Array,
  ): Promise<MessageShape<(typeof NodeService.method)[K]['output']>> {
    const method = NodeService.method[name];
    const { status, bytes } = await this.#exchange(method.name, body);
    if (status !== 200) throw refusal(bytes);
    return fromBinary(method.output as DescMessage, bytes) as MessageShape<(typeof NodeService.method)[K]['output']>;
  }

  /** Opens Watch; `onFrame` gets each encoded WatchEvent, `onEnd` the reason once it is over. */
  watch(
    request: MessageInitShape<typeof WatchRequestSchema>,
    onFrame: (event: Buffer) => void,
    onEnd: (reason: CallRefused | null) => void,
  ): ClientHttp2Stream {
    const stream = this.#request('Watch', 'application/connect+proto');
    stream.end(encodeEnvelope(toBinary(WatchRequestSchema, create(WatchRequestSchema, request))));
    const reader = new EnvelopeReader();
    let reason: CallRefused | null = null;
    stream.on('data', (chunk: Buffer) => {
      for (const { last, payload } of reader.push(chunk)) {
        if (last) reason = endReason(payload);
        else onFrame(payload);
      }
    });
    stream.once('error', () => undefined);
    stream.once('close', () => onEnd(reason));
    return stream;
  }

  destroy(): void {
    this.#session.destroy();
  }

  #request(name: string, contentType: string): ClientHttp2Stream {
    return this.#session.request({
      [constants.HTTP2_HEADER_METHOD]: 'POST',
      [constants.HTTP2_HEADER_PATH]: `/${NodeService.typeName}/${name}`,
      [constants.HTTP2_HEADER_CONTENT_TYPE]: contentType,
    });
  }

  #exchange(name: string, body: Uint8Array): Promise<{ status: number; bytes: Buffer }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; bytes: Buffer }>();
    if (this.closed) return Promise.reject(new CallRefused('unavailable', 'the connection is closed'));
    const stream = this.#request(name, 'application/proto');
    const chunks: Buffer[] = [];
    let size = 0;
    let status = 0;
    stream.setTimeout(CALL_MS, () => stream.destroy());
    stream.on('response', (headers) => {
      status = Number(headers[constants.HTTP2_HEADER_STATUS]);
    });
    stream.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES) stream.destroy();
      else chunks.push(chunk);
    });
    stream.once('end', () => {
      // A call that is cut before it is answered ends, too.
      if (status !== 0) resolve({ status, bytes: Buffer.concat(chunks) });
    });
    stream.once('error', (error) => reject(new CallRefused('unavailable', error.message)));
    stream.once('close', () => reject(new CallRefused('unavailable', 'the call was cut off')));
    stream.end(body);
    return promise;
  }
}

function refusal(bytes: Buffer): CallRefused {
  try {
    const { code, message } = JSON.parse(bytes.toString()) as { code?: string; message?: string };
    return new CallRefused(code ?? 'unknown', message ?? '');
  } catch {
    return new CallRefused('unknown', bytes.toString().slice(0, 200));
  }
}

function endReason(payload: Buffer): CallRefused | null {
  const { error } = JSON.parse(payload.toString()) as { error?: { code: string; message?: string } };
  return error ? new CallRefused(error.code, error.message ?? '') : null;
}
