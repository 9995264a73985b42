// Certificates of the node: which ones the configuration names, the pack with their material, how it gets there.
import type { NodeChannel } from '../../kit/channel-client.ts';
import type { Log } from '../../kit/log.ts';
import type { EntryObserver } from '../config/config-store.ts';
import { CertificateFeed } from './certificate-feed.ts';
import { CertificatePack } from './certificate-pack.ts';
import { CertificateUses, certificatesOf, HTTPS_KIND } from './certificate-uses.ts';
import type { Fingerprint } from './fingerprint.ts';
import type { Resolve } from './ocsp/ask-responder.ts';
import { Stapler } from './ocsp/stapler.ts';

/** How long a change of the configuration waits for the certificates that it names. */
const READY_MS = 2_000;
/** While many are pulled, the data plane looks at the pack this often. */
const READ_EVERY_MS = 1_000;

export interface CertificatesOptions {
  /** The pack. */
  path: string;
  log: Log;
  /** The channel while the console answers. */
  channel: () => NodeChannel | undefined;
  /** Whether the data plane can serve certificates. */
  isNeeded: () => boolean;
  /** Bodies of former versions of entries that may be what serves. */
  formerEntries: (kind: string) => Iterable<Uint8Array>;
  /** The data plane has to look at the pack. */
  grew: () => void;
  /** What is wrong changed. */
  changed: () => void;
  /** How names of responders are resolved, for tests. */
  resolve?: Resolve;
}

/** What people are shown. */
export interface CertificatesView {
  held: number;
  /** Named by the configuration and not there. */
  missing: number;
}

export class Certificates {
  private readonly options: CertificatesOptions;
  private readonly pack: CertificatePack;
  private readonly uses: CertificateUses;
  private readonly feed: CertificateFeed;
  private readonly stapler: Stapler;
  private reading: NodeJS.Timeout | undefined;
  private readAt = Number.NEGATIVE_INFINITY;
  private diskProblem = '';
  /** Changes of uses that the stapler was told of. */
  private stapled = 0;

  /** Reads where what is in the pack; throws when the disk cannot be used. */
  constructor(options: CertificatesOptions) {
    this.options = options;
    const { path, log, channel, isNeeded, changed } = options;
    this.pack = CertificatePack.open({ path, log });
    this.uses = new CertificateUses((fingerprint) => this.feed.onUse(fingerprint));
    this.feed = new CertificateFeed({
      uses: this.uses,
      pack: this.pack,
      log,
      channel,
      isNeeded,
      grew: () => {
        this.grew();
        this.stapler.soon();
      },
      changed,
    });
    const { resolve } = options;
    this.stapler = new Stapler({
      pack: this.pack,
      uses: this.uses,
      log,
      grew: () => this.grew(),
      ...(resolve ? { asking: { resolve } } : {}),
    });
  }

  /** To be told of the entries of the configuration. */
  get observer(): EntryObserver {
    return this.uses;
  }

  /** Why certificates are missing; "" when none is. */
  get message(): string {
    return this.feed.message || this.diskProblem;
  }

  get view(): CertificatesView {
    return { held: this.pack.certificates, missing: this.feed.lacking };
  }

  /**
   * Resolves when the certificates of these sites (undefined: of all) can be read by the data plane, or are not to be had soon;
   * undefined: now.
   */
  ready(siteIds: readonly string[] | undefined): Promise<void> | undefined {
    if (siteIds?.length === 0) return undefined;
    const wanted = siteIds === undefined ? this.feed.wanted : this.ofSites(siteIds);
    const wait = this.feed.whenHad(wanted, READY_MS);
    if (!wait) {
      this.readNow();
      return undefined;
    }
    return wait.then(() => this.readNow());
  }

  onConnected(): void {
    this.feed.onConnected();
  }

  /** The data plane said what it can do. */
  onAble(): void {
    this.feed.onAble();
  }

  /** The data plane runs another configuration. */
  onApplied(): void {
    // Looking at all certificates for a change that concerns none would cost more with each of them.
    if (this.uses.changes === this.stapled) return;
    this.stapled = this.uses.changes;
    this.stapler.soon();
  }

  /** Drops what no entry names any more, when it is worth a rewrite. Never rejects. */
  async maintain(): Promise<void> {
    try {
      const former = new Set<Fingerprint>();
      for (const body of this.options.formerEntries(HTTPS_KIND))
        for (const { fingerprint } of certificatesOf(body)) former.add(fingerprint);
      const isKept = (fingerprint: Fingerprint): boolean =>
        this.uses.get(fingerprint) !== undefined || former.has(fingerprint);
      if (await this.pack.compactIfWorthwhile(isKept)) {
        // What was named again while it was left out.
        for (const [fingerprint] of this.uses.entries()) this.feed.onUse(fingerprint);
        this.options.grew();
      }
      this.diskProblem = '';
    } catch (error) {
      if (this.diskProblem === '') this.options.log.error('certificate pack not rewritten', { error });
      this.diskProblem = 'the certificate pack cannot be rewritten';
    }
  }

  async stop(): Promise<void> {
    clearTimeout(this.reading);
    await Promise.all([this.feed.stop(), this.stapler.stop()]);
  }

  close(): Promise<void> {
    return this.pack.close();
  }

  private *ofSites(siteIds: readonly string[]): Generator<Fingerprint> {
    for (const siteId of siteIds) yield* this.uses.ofSite(siteId);
  }

  private grew(): void {
    if (this.reading) {
      if (!this.feed.isMoreComing) this.readNow();
      return;
    }
    const delayMs = this.feed.isMoreComing ? this.readAt + READ_EVERY_MS - performance.now() : 0;
    this.reading = setTimeout(() => this.readNow(), Math.max(0, delayMs));
  }

  /** Has the data plane look at what was added since it did so last. */
  private readNow(): void {
    if (!this.reading) return;
    clearTimeout(this.reading);
    this.reading = undefined;
    this.readAt = performance.now();
    this.options.grew();
  }
}
