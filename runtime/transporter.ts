// Calls between processes over Redis Pub/Sub, encrypted: a packet that no process of this console made is dropped. The
// stock transporter makes one more publishing connection with every reconnect of its subscriber and never looks at it
// again; this one keeps its two connections for life.
import type { Redis } from 'ioredis';
import { type BrokerOptions, Transporters } from 'moleculer';
import { createRedis, DEAD_LINK_MS } from './create-runtime.ts';
import type { PacketCipher } from './packet-cipher.ts';
import { PACKETS, PacketGuard } from './packet-guard.ts';
import type { PacketSeal } from './packet-seal.ts';

/** What processes tell of themselves with every INFO packet, for the others' choice of a packet's form. */
export const PACKETS_UNDERSTOOD = { packets: PACKETS };

/** Packets of calls. They alone hold what clients and services tell each other. */
const OF_CALLS = new Set(['REQ', 'RES', 'EVENT']);

/** Between two questions whether a connection that only listens is alive. */
const PING_MS = 1_000;

interface KnownNode {
  local: boolean;
  available: boolean;
  metadata?: { packets?: unknown } | null;
}

interface Connections {
  broker: { registry: { nodes: { get(id: string): KnownNode | undefined; toArray(): KnownNode[] } } };
  clientPub: Redis | null;
  clientSub: Redis | null;
  connected: boolean;
  prefix: string;
  logger: { warn(...args: unknown[]): void };
  onConnected(wasReconnect?: boolean): Promise<void>;
  receive(command: string, packet: Buffer): void;
}

class RedisTransporter extends (Transporters.Redis as unknown as new (options: unknown) => Connections) {
  readonly #url: string;
  readonly #guard: PacketGuard;
  readonly #onRefused: (topic: string) => void;

  constructor({ redisUrl, seal, cipher, onRefused }: TransporterOptions) {
    super({});
    this.#url = redisUrl;
    this.#guard = new PacketGuard(seal, cipher);
    this.#onRefused = onRefused;
  }

  /** Resolves once both connections were ready for the first time, however long that takes. */
  async connect(): Promise<void> {
    const sub = createRedis(this.#url, { maxRetriesPerRequest: null, socketTimeout: DEAD_LINK_MS });
    // Without a queue: a request that waited for Redis would run after its caller was told that it did not.
    const pub = createRedis(this.#url, {
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      socketTimeout: DEAD_LINK_MS,
    });
    askWhetherAlive(sub);
    this.clientSub = sub;
    this.clientPub = pub;
    sub.on('messageBuffer', (channel: Buffer, packet: Buffer) => {
      const topic = channel.toString();
      const body = this.#guard.unwrap(topic, packet);
      if (body === null) return this.#onRefused(topic);
      this.receive(this.#parts(topic).command, body);
    });
    let connectedBefore = false;
    await new Promise<void>((resolve, reject) => {
      const onReady = () => {
        if (sub.status !== 'ready' || pub.status !== 'ready') return;
        const again = connectedBefore;
        connectedBefore = true;
        // The client has subscribed again by itself; after that the broker only has to tell the others.
        this.onConnected(again).then(resolve, reject);
      };
      for (const redis of [sub, pub]) {
        redis.on('ready', onReady);
        redis.on('error', (error) => this.logger.warn('redis transporter', error));
        redis.on('close', () => {
          this.connected = false;
        });
      }
    });
  }

  /** Fails at once while Redis is away, with an error that says so. */
  async send(topic: string, packet: Buffer): Promise<void> {
    try {
      await this.clientPub?.publish(topic, this.#guard.wrap(topic, packet, this.#form(topic)));
    } catch (cause) {
      throw Object.assign(new Error('the transporter is disconnected', { cause }), {
        code: 503,
        type: 'TRANSPORTER_AWAY',
        retryable: true,
      });
    }
  }

  /** The type of a packet and the process that it is for, which broadcasts have none of. */
  #parts(topic: string): { command: string; target: string | null } {
    const [command = '', ...target] = topic.slice(this.prefix.length + 1).split('.');
    return { command, target: target.length > 0 ? target.join('.') : null };
  }

  /**
   * Processes of the release before get what they understand. A broadcast is encrypted when all that are known can read
   * it; calls to a process of which nothing is known yet always are.
   */
  #form(topic: string): 'encrypted' | 'signed' {
    const { command, target } = this.#parts(topic);
    const { nodes } = this.broker.registry;
    if (target === null) {
      const others = nodes.toArray().filter(({ local, available }) => !local && available);
      return others.length > 0 && others.every(reads) ? 'encrypted' : 'signed';
    }
    const node = nodes.get(target);
    if (!node) return OF_CALLS.has(command) ? 'encrypted' : 'signed';
    return reads(node) ? 'encrypted' : 'signed';
  }
}

/** A connection that only listens would not notice that its link died. */
function askWhetherAlive(redis: Redis): void {
  const timer = setInterval(() => {
    if (redis.status === 'ready') redis.ping().catch(() => undefined);
  }, PING_MS).unref();
  redis.once('end', () => clearInterval(timer));
}

function reads({ local, metadata }: KnownNode): boolean {
  return local || Number(metadata?.packets ?? 1) >= PACKETS;
}

export interface TransporterOptions {
  redisUrl: string;
  seal: PacketSeal;
  cipher: PacketCipher;
  /** Told of each packet that was dropped, with its topic. */
  onRefused(topic: string): void;
}

/** A transporter for the broker's options. */
export function createTransporter(options: TransporterOptions): NonNullable<BrokerOptions['transporter']> {
  return new RedisTransporter(options) as unknown as NonNullable<BrokerOptions['transporter']>;
}
