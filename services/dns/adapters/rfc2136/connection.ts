// One message to a server of names over TCP, and the messages that it answers with.
import { connect, type Socket } from 'node:net';
import { AddressRefused, resolveChecked } from '../../../../proto/address-policy.ts';
import { AdapterError } from '../adapter.ts';
import type { ServerAddress } from '../server-address.ts';

export interface Server {
  address: ServerAddress;
  /** CIDRs of private networks in which it may be. */
  allow: readonly string[];
  timeoutMs: number;
}

/**
 * Sends a message with its length before it, and hands on those that come back until `read` returns something. Throws
 * {@link AdapterError}; `writes`: after the message is sent, nobody knows whether it took effect.
 */
export async function exchange<T>(
  { address: { host, port }, allow, timeoutMs }: Server,
  message: Buffer,
  writes: boolean,
  signal: AbortSignal,
  read: (message: Buffer) => T | undefined,
): Promise<T> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const ended = AbortSignal.any([deadline, signal]);
  let isSent = false;
  try {
    const addresses = await resolveChecked(host, allow, timeoutMs);
    const socket = await connectOne(addresses, port, ended);
    try {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(message.length);
      isSent = true;
      socket.write(Buffer.concat([length, message]));
      return await readMessages(socket, read);
    } finally {
      socket.destroy();
    }
  } catch (error) {
    if (error instanceof AdapterError) throw error;
    if (error instanceof AddressRefused && error.reason === 'forbidden') {
      throw new AdapterError('address_refused', '', { cause: error });
    }
    const isUnknown = isSent && (writes || ended.aborted);
    throw new AdapterError(isUnknown ? 'timeout' : 'unavailable', 'no answer', { unreachable: true, cause: error });
  }
}

/** The first address that answers. */
async function connectOne(addresses: readonly string[], port: number, signal: AbortSignal): Promise<Socket> {
  let failure: unknown = new Error('no address');
  for (const host of addresses) {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    const socket = connect({ host, port, signal });
    socket.once('connect', () => resolve(socket));
    socket.on('error', reject);
    try {
      return await promise;
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

async function readMessages<T>(socket: Socket, read: (message: Buffer) => T | undefined): Promise<T> {
  let chunks: Buffer[] = [];
  let size = 0;
  let wanted = 2;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size < wanted) continue;
    let rest: Buffer = Buffer.concat(chunks);
    for (;;) {
      wanted = rest.length < 2 ? 2 : 2 + rest.readUInt16BE(0);
      if (rest.length < wanted) break;
      const result = read(rest.subarray(2, wanted));
      if (result !== undefined) return result;
      rest = rest.subarray(wanted);
    }
    chunks = [rest];
    size = rest.length;
  }
  throw new Error('the server ended the connection');
}
