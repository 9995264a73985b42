// Brings the certificates that entries name and the pack lacks. Entries say which those are; the console is asked for up to 64
// at a time, for what was named last first. What it does not have, or what cannot be served, is asked for again more and more
// rarely, and told by name.
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { type CertificateRef, CertificateRefSchema } from '../../../proto/gen/svc/config/v1/https_pb.js';
import type { CertificateMaterial } from '../../../proto/gen/svc/node/v1/certificates_pb.js';
import { backoffDelay } from '../../kit/backoff.ts';
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import { PullLoop } from '../lib/pull-loop.ts';
import type { CertificatePack } from './certificate-pack.ts';
import type { CertificateUses, UsedCertificate } from './certificate-uses.ts';
import { problemOfMaterial } from './check-material.ts';
import { type Fingerprint, fingerprintBytes, fingerprintOf } from './fingerprint.ts';

const BATCH = 64;
const PARALLEL = 3;
/** What the console did not have is asked for again after these. */
const RETRY_MIN_MS = 5_000;
const RETRY_MAX_MS = 10 * 60_000;
/** Names in a message. */
const MAX_NAMED = 5;

export interface CertificateFeedOptions {
  uses: CertificateUses;
  pack: CertificatePack;
  log: Log;
  channel: () => NodeChannel | undefined;
  /** Whether the data plane can serve certificates at all. */
  isNeeded: () => boolean;
  /** The pack has more. */
  grew: () => void;
  /** What is wrong changed. */
  changed: () => void;
}

/** A certificate that could not be had. */
interface Refusal {
  reason: string;
  tries: number;
  /** performance.now() from which on it is asked for again. */
  notBefore: number;
}

export class CertificateFeed {
  private readonly options: CertificateFeedOptions;
  private readonly loop: PullLoop;
  /** Named and not in the pack, in the order in which they were named. */
  private readonly missing = new Set<Fingerprint>();
  private readonly refused = new Map<Fingerprint, Refusal>();
  private waiting: { fingerprints: readonly Fingerprint[]; done: () => void }[] = [];

  constructor(options: CertificateFeedOptions) {
    this.options = options;
    this.loop = new PullLoop({
      name: 'certificates',
      log: options.log,
      pull: (signal) => this.pull(signal),
      settled: () => this.settled(),
    });
  }

  /** Named certificates that the pack lacks. */
  get lacking(): number {
    return this.missing.size;
  }

  /** What cannot be served for want of which certificates; "" when all are there. */
  get message(): string {
    const { uses } = this.options;
    if (this.missing.size === 0 || !this.options.isNeeded()) return '';
    if (this.loop.problem !== '') return `certificates not fetched: ${this.loop.problem}`;
    const named = [...this.refused].slice(0, MAX_NAMED).map(([fingerprint, { reason }]) => {
      const use = uses.get(fingerprint);
      return `${use?.name || use?.certificateId}: ${reason}`;
    });
    const more = this.refused.size - named.length;
    if (named.length === 0) return '';
    return `certificates not available: ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  }

  /** Entries began to name a certificate, or ceased to. */
  onUse(fingerprint: Fingerprint): void {
    const { uses, pack } = this.options;
    if (!uses.get(fingerprint)) {
      this.missing.delete(fingerprint);
      this.refused.delete(fingerprint);
    } else if (!pack.has(fingerprint)) {
      this.missing.add(fingerprint);
      this.request();
    }
  }

  onConnected(): void {
    for (const refusal of this.refused.values()) refusal.notBefore = 0;
    this.loop.hurry();
    this.request();
  }

  /** The data plane may need certificates now. */
  onAble(): void {
    if (!this.loop.busy && this.options.isNeeded()) this.request();
  }

  /** What is missing is not all refused. */
  get isMoreComing(): boolean {
    return this.missing.size > this.refused.size;
  }

  /**
   * Resolves when these are in the pack or are known not to come soon, at the latest after `timeoutMs`; undefined when there is
   * nothing to wait for.
   */
  whenHad(fingerprints: Iterable<Fingerprint>, timeoutMs: number): Promise<void> | undefined {
    const awaited = [...fingerprints].filter((fingerprint) => this.isComing(fingerprint));
    if (awaited.length === 0 || !this.options.isNeeded() || !this.options.channel() || this.loop.problem !== '')
      return undefined;
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.waiting = this.waiting.filter((wait) => wait !== wish);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      const wish = { fingerprints: awaited, done };
      this.waiting.push(wish);
      this.request();
    });
  }

  /** All that the pack lacks. */
  get wanted(): Iterable<Fingerprint> {
    return this.missing;
  }

  async stop(): Promise<void> {
    await this.loop.stop();
    for (const { done } of this.waiting) done();
  }

  private isComing(fingerprint: Fingerprint): boolean {
    return this.missing.has(fingerprint) && !this.refused.has(fingerprint);
  }

  private request(): void {
    // Entries that came together are asked for together.
    if (this.missing.size > this.refused.size || this.due().length > 0) this.loop.request(this.loop.busy ? 0 : 1);
  }

  /** Due ones, what was named last first. */
  private due(): Fingerprint[] {
    const now = performance.now();
    return [...this.missing].filter((fingerprint) => (this.refused.get(fingerprint)?.notBefore ?? 0) <= now).reverse();
  }

  private async pull(signal: AbortSignal): Promise<boolean> {
    const channel = this.options.channel();
    if (!channel || !this.options.isNeeded()) return false;
    const batches: Fingerprint[][] = [];
    const due = this.due();
    for (let at = 0; at < due.length && batches.length < PARALLEL; at += BATCH) batches.push(due.slice(at, at + BATCH));
    const results = await Promise.allSettled(batches.map((batch) => this.pullBatch(channel, batch, signal)));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    return due.length > BATCH * PARALLEL;
  }

  private async pullBatch(channel: NodeChannel, batch: readonly Fingerprint[], signal: AbortSignal): Promise<void> {
    const asked = new Map<Fingerprint, UsedCertificate>();
    for (const fingerprint of batch) {
      const use = this.options.uses.get(fingerprint);
      if (use) asked.set(fingerprint, use);
    }
    if (asked.size === 0) return;
    const certificates = [...asked].map(
      ([fingerprint, { certificateId }]): CertificateRef =>
        create(CertificateRefSchema, { certificateId, fingerprint: fingerprintBytes(fingerprint) }),
    );
    const answer = await this.ask(channel, certificates, signal);
    const good: CertificateMaterial[] = [];
    for (const material of answer) {
      const fingerprint = fingerprintOf(material.fingerprint);
      if (asked.get(fingerprint)?.certificateId !== material.certificateId) continue;
      asked.delete(fingerprint);
      const problem = problemOfMaterial(material);
      if (problem === undefined) good.push(material);
      else this.refuse(fingerprint, problem);
    }
    for (const fingerprint of asked.keys()) this.refuse(fingerprint, 'the console does not have it');
    if (good.length === 0) return this.told();
    await this.options.pack.put(good);
    for (const material of good) {
      const fingerprint = fingerprintOf(material.fingerprint);
      this.missing.delete(fingerprint);
      this.refused.delete(fingerprint);
    }
    this.options.grew();
    this.told();
  }

  private async ask(
    channel: NodeChannel,
    certificates: CertificateRef[],
    signal: AbortSignal,
  ): Promise<readonly CertificateMaterial[]> {
    try {
      return await channel.getCertificates({ certificates }, { signal });
    } catch (error) {
      // A console of before there were any has none.
      if (error instanceof ConnectError && error.code === Code.Unimplemented) return [];
      throw error;
    }
  }

  private refuse(fingerprint: Fingerprint, reason: string): void {
    // It may not be named any more.
    if (!this.missing.has(fingerprint)) return;
    const before = this.refused.get(fingerprint);
    const tries = (before?.tries ?? 0) + 1;
    const delayMs = backoffDelay(tries - 1, Math.random, RETRY_MIN_MS, RETRY_MAX_MS);
    this.refused.set(fingerprint, { reason, tries, notBefore: performance.now() + delayMs });
    this.loop.request(delayMs);
    if (before?.reason === reason) return;
    const { certificateId, name } = this.options.uses.get(fingerprint)!;
    this.options.log.warn('certificate not available', { certificateId, name, reason, retryInMs: delayMs });
    this.options.changed();
  }

  /** Lets go who waits for nothing that is on its way. */
  private told(): void {
    for (const { fingerprints, done } of this.waiting)
      if (!fingerprints.some((fingerprint) => this.isComing(fingerprint))) done();
  }

  private settled(): void {
    this.told();
    const { channel, isNeeded } = this.options;
    if (channel() && isNeeded() && this.due().length > 0) this.loop.request(RETRY_MIN_MS * Math.random());
  }
}
