// Addresses that kernel bans must never drop.

import { lookup } from 'node:dns/promises';
import { fromBinary } from '@bufbuild/protobuf';
import {
  ClientIpMode,
  ClientIpSchema,
  IpListChunkSchema,
  IpListKind,
  IpListSchema,
} from '../../../proto/gen/svc/config/v1/cluster_pb.js';
import { errorText, type Log } from '../../kit/log.ts';
import { type Cidr, formatCidr, parseCidr } from '../bans/cidr.ts';
import type { EntryObserver } from '../config/config-store.ts';

const LOOPBACK = ['127.0.0.0/8', '::1/128'];
const RESOLVE_TIMEOUT_MS = 5000;
const MAX_CONSOLE_NAMES = 64;
const NO_PROXY_PEERS =
  'mode proxy_protocol without --proxy-peers: every peer can name any client address, so no address is exempt';

/** Follows the entries that name exempt addresses: trusted proxies and allow lists. */
export class AllowList implements EntryObserver {
  private readonly log: Log;
  private readonly fixed: readonly string[];
  private readonly onChange: () => void;
  private trusted: readonly string[] = [];
  private readonly listKinds = new Map<string, IpListKind>();
  private readonly chunks = new Map<string, { listId: string; cidrs: readonly string[] }>();
  private readonly resolved = new Map<string, readonly string[]>();

  /** `fixed` are exempt always, e.g. PROXY protocol peers. */
  constructor(log: Log, fixed: readonly string[], onChange: () => void) {
    this.log = log;
    this.fixed = fixed;
    this.onChange = onChange;
  }

  put(kind: string, id: string, body: Uint8Array): void {
    try {
      if (kind === 'client-ip') {
        const entry = fromBinary(ClientIpSchema, body);
        this.trusted = entry.mode === ClientIpMode.HEADER ? entry.trustedCidrs : [];
        if (entry.mode === ClientIpMode.PROXY_PROTOCOL && this.fixed.length === 0) this.log.warn(NO_PROXY_PEERS);
      } else if (kind === 'ip-list') {
        this.listKinds.set(id, fromBinary(IpListSchema, body).listKind);
      } else if (kind === 'ip-list-chunk') {
        const { listId, cidrs } = fromBinary(IpListChunkSchema, body);
        this.chunks.set(id, { listId, cidrs });
      } else {
        return;
      }
      this.onChange();
    } catch (error) {
      this.log.warn('configuration entry not readable for kernel bans, its addresses keep their last state', {
        kind,
        id,
        error,
      });
    }
  }

  remove(kind: string, id: string): void {
    if (kind === 'client-ip') this.trusted = [];
    else if (kind === 'ip-list') this.listKinds.delete(id);
    else if (kind === 'ip-list-chunk') this.chunks.delete(id);
    else return;
    this.onChange();
  }

  clear(): void {
    this.trusted = [];
    this.listKinds.clear();
    this.chunks.clear();
    this.onChange();
  }

  /** Resolves host names of the console; names that do not resolve keep their last answer. */
  async resolve(names: readonly string[]): Promise<void> {
    const wanted = new Set(names.slice(0, MAX_CONSOLE_NAMES));
    const before = this.consoleAddresses();
    for (const name of this.resolved.keys()) if (!wanted.has(name)) this.resolved.delete(name);
    await Promise.all(
      [...wanted].map(async (name) => {
        const literal = parseCidr(name);
        if (literal) {
          this.resolved.set(name, [formatCidr(literal)]);
          return;
        }
        try {
          const answers = await withTimeout(lookup(name, { all: true }), RESOLVE_TIMEOUT_MS);
          this.resolved.set(name, answers.map((answer) => answer.address.split('%')[0]!).sort());
        } catch (error) {
          this.log.warn('console address not resolved, its last addresses stay exempt', {
            name,
            error: errorText(error),
          });
        }
      }),
    );
    if (this.consoleAddresses() !== before) this.onChange();
  }

  /** Every exempt prefix, masked, without duplicates. */
  cidrs(): Cidr[] {
    const texts = [...LOOPBACK, ...this.fixed, ...this.trusted, ...[...this.resolved.values()].flat()];
    for (const { listId, cidrs } of this.chunks.values()) {
      if (this.listKinds.get(listId) === IpListKind.ALLOW) texts.push(...cidrs);
    }
    const found = new Map<string, Cidr>();
    for (const text of texts) {
      const cidr = parseCidr(text);
      if (cidr) found.set(formatCidr(cidr), cidr);
      else this.log.warn('malformed exempt address ignored', { cidr: text.slice(0, 64) });
    }
    return [...found.values()];
  }

  private consoleAddresses(): string {
    return JSON.stringify([...this.resolved].sort());
  }
}

function withTimeout<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no response within ${ms} ms`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
