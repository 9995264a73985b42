// A server of names for tests: it answers for all it has over UDP and TCP, and takes signed changes (RFC 2136, RFC 8945) over
// TCP. Signatures are checked and made here by themselves, so that nothing agrees with the console by sharing its mistakes.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createServer, type Server, type Socket } from 'node:net';

const TYPES = { CNAME: 5, TXT: 16, TSIG: 250 } as const;
const REFUSED = 5;
const NOT_AUTHORITATIVE = 9;
const BAD_SIGNATURE = 16;

export interface TestDnsKey {
  name: string;
  algorithm: 'hmac-sha256' | 'hmac-sha512';
  secret: Buffer;
}

export class TestDns {
  readonly zone: string;
  readonly key: TestDnsKey;
  /** Values by name. */
  readonly texts = new Map<string, Set<string>>();
  readonly aliases = new Map<string, string>();
  /** Names whose values are taken and not answered. */
  readonly hidden = new Set<string>();
  /** Changes taken, as "add name" and "remove name". */
  readonly changes: string[] = [];
  /** Changes of this kind are refused. */
  refuses: 'add' | 'remove' | null = null;
  /** Values that stood at one name at the same time, at most. */
  together = 0;
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #open = new Set<Socket>();
  port = 0;

  constructor(zone: string, key: TestDnsKey) {
    this.zone = zone;
    this.key = key;
    this.#udp = createSocket('udp4', (message, { address, port }) => {
      this.#udp.send(this.#answer(message), port, address);
    });
    this.#tcp = createServer((socket) => {
      this.#open.add(socket);
      socket.on('close', () => this.#open.delete(socket));
      socket.on('error', () => undefined);
      void this.#serve(socket);
    });
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Listens on 127.0.0.1, both on the same port. */
  async start(): Promise<this> {
    for (let attempt = 0; ; attempt++) {
      await new Promise<void>((resolve) => this.#tcp.listen(0, '127.0.0.1', resolve));
      this.port = (this.#tcp.address() as { port: number }).port;
      const bound = await new Promise<boolean>((resolve) => {
        this.#udp.once('error', () => resolve(false));
        this.#udp.bind(this.port, '127.0.0.1', () => resolve(true));
      });
      if (bound) return this;
      if (attempt === 20) throw new Error('no port is free for UDP and TCP');
      await new Promise((resolve) => this.#tcp.close(resolve));
    }
  }

  async stop(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    await Promise.all([
      new Promise<void>((resolve) => this.#udp.close(resolve)),
      new Promise((resolve) => this.#tcp.close(resolve)),
    ]);
  }

  change(action: 'add' | 'remove', name: string, value: string): void {
    const values = this.texts.get(name) ?? new Set();
    if (action === 'add') values.add(value);
    else values.delete(value);
    this.together = Math.max(this.together, values.size);
    if (values.size > 0) this.texts.set(name, values);
    else this.texts.delete(name);
    this.changes.push(`${action} ${name}`);
  }

  async #serve(socket: Socket): Promise<void> {
    let read: Buffer = Buffer.alloc(0);
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      read = Buffer.concat([read, chunk]);
      while (read.length >= 2 && read.length >= 2 + read.readUInt16BE(0)) {
        const answer = this.#answer(read.subarray(2, 2 + read.readUInt16BE(0)));
        socket.write(Buffer.concat([uint16(answer.length), answer]));
        read = read.subarray(2 + read.readUInt16BE(0));
      }
    }
  }

  #answer(message: Buffer): Buffer {
    return ((message[2]! >> 3) & 15) === 5 ? this.#update(message) : this.#query(message);
  }

  #query(message: Buffer): Buffer {
    const { name, end } = readName(message, 12);
    const type = message.readUInt16BE(end);
    const alias = this.aliases.get(name);
    const at = alias ?? name;
    const values = this.hidden.has(at) ? [] : [...(this.texts.get(at) ?? [])];
    const records: Buffer[] = [];
    if (alias !== undefined) records.push(record(name, TYPES.CNAME, encodeName(alias)));
    if (type === TYPES.TXT) records.push(...values.map((value) => record(at, TYPES.TXT, text(value))));
    const flags = message.readUInt16BE(2);
    const counts = [1, records.length, 0, 0].map(uint16);
    const head = [message.subarray(0, 2), uint16((flags & 0x7900) | 0x8400), ...counts];
    return Buffer.concat([...head, message.subarray(12, end + 4), ...records]);
  }

  #update(message: Buffer): Buffer {
    const { name: zone, end } = readName(message, 12);
    const { name, end: at } = readName(message, end + 4);
    const isAdded = message.readUInt16BE(at + 2) === 1;
    const dataEnd = at + 10 + message.readUInt16BE(at + 8);
    const value = message.toString('latin1', at + 11, dataEnd);
    const signature = this.#signature(message, dataEnd);
    if (!signature) return this.#signed(message, NOT_AUTHORITATIVE, Buffer.alloc(0), BAD_SIGNATURE);
    const action = isAdded ? 'add' : 'remove';
    if (zone !== this.zone) return this.#signed(message, NOT_AUTHORITATIVE, signature, 0);
    if (this.refuses === action) return this.#signed(message, REFUSED, signature, 0);
    this.change(action, name, value);
    return this.#signed(message, 0, signature, 0);
  }

  /** Of a request that is signed as it should; null otherwise. */
  #signature(message: Buffer, start: number): Buffer | null {
    const { name, end } = readName(message, start);
    if (name !== this.key.name || message.readUInt16BE(end) !== TYPES.TSIG) return null;
    const { name: algorithm, end: at } = readName(message, end + 10);
    const length = message.readUInt16BE(at + 8);
    const mac = message.subarray(at + 10, at + 10 + length);
    const unsigned = Buffer.from(message.subarray(0, start));
    unsigned.writeUInt16BE(0, 10);
    const expected = this.#mac(Buffer.concat([unsigned, this.#variables(message.subarray(at, at + 8), 0)]));
    const right = algorithm === this.key.algorithm && mac.length === expected.length && timingSafeEqual(mac, expected);
    return right ? mac : null;
  }

  #signed(request: Buffer, rcode: number, requestMac: Buffer, error: number): Buffer {
    const message = Buffer.concat([request.subarray(0, 2), uint16(0xa800 | rcode), Buffer.alloc(8)]);
    const stamp = Buffer.alloc(8);
    stamp.writeUIntBE(Math.floor(Date.now() / 1000), 0, 6);
    stamp.writeUInt16BE(300, 6);
    const signed = Buffer.concat([uint16(requestMac.length), requestMac, message, this.#variables(stamp, error)]);
    const mac = error === 0 ? this.#mac(signed) : Buffer.alloc(0);
    const tail = [uint16(mac.length), mac, request.subarray(0, 2), uint16(error), uint16(0)];
    const data = Buffer.concat([encodeName(this.key.algorithm), stamp, ...tail]);
    const fixed = Buffer.concat([uint16(TYPES.TSIG), uint16(255), Buffer.alloc(4), uint16(data.length)]);
    message.writeUInt16BE(1, 10);
    return Buffer.concat([message, encodeName(this.key.name), fixed, data]);
  }

  #mac(bytes: Buffer): Buffer {
    return createHmac(this.key.algorithm.slice(5), this.key.secret).update(bytes).digest();
  }

  #variables(stamp: Buffer, error: number): Buffer {
    const head = [encodeName(this.key.name), uint16(255), Buffer.alloc(4), encodeName(this.key.algorithm)];
    return Buffer.concat([...head, stamp, uint16(error), uint16(0)]);
  }
}

function record(name: string, type: number, data: Buffer): Buffer {
  return Buffer.concat([encodeName(name), uint16(type), uint16(1), Buffer.alloc(4), uint16(data.length), data]);
}

function text(value: string): Buffer {
  return Buffer.concat([Buffer.of(value.length), Buffer.from(value)]);
}

function encodeName(name: string): Buffer {
  const labels = name.split('.').flatMap((label) => [Buffer.of(label.length), Buffer.from(label)]);
  return Buffer.concat([...labels, Buffer.of(0)]);
}

/** Of requests, which point nowhere. */
function readName(message: Buffer, start: number): { name: string; end: number } {
  const labels: string[] = [];
  let at = start;
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(
      message
        .subarray(at + 1, at + 1 + length)
        .toString('latin1')
        .toLowerCase(),
    );
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
