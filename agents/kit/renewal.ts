// Renews the node's certificate when less than a third of its lifetime is left or when the console asks.
import { assertIssued, type NodeChannel, type NodeIdentity } from './channel-client.ts';
import { promoteNext, renewalDue, saveNextKey, validityOf } from './identity.ts';
import type { Log } from './log.ts';

const MIN_INTERVAL_MS = 60_000;

export interface RenewalOptions {
  stateDir: string;
  log: Log;
  identity: NodeIdentity;
  /** The new identity is on disk: the next connection must use it. */
  renewed: (identity: NodeIdentity) => void;
}

export class Renewal {
  private readonly options: RenewalOptions;
  private current: NodeIdentity;
  private lastTry = Number.NEGATIVE_INFINITY;
  private running = false;

  constructor(options: RenewalOptions) {
    this.options = options;
    this.current = options.identity;
  }

  get identity(): NodeIdentity {
    return this.current;
  }

  /** Unix seconds. */
  get notAfter(): number {
    return Math.floor(validityOf(this.current.certificatePem).notAfter / 1000);
  }

  /** Renews when it is time or `asked`; at most once a minute. Failures are logged, the old certificate stays in use. */
  async check(channel: NodeChannel, asked: boolean, nowMs = Date.now()): Promise<void> {
    const { stateDir, log } = this.options;
    if (this.running || !(asked || renewalDue(this.current.certificatePem, nowMs))) return;
    if (performance.now() - this.lastTry < MIN_INTERVAL_MS) return;
    this.lastTry = performance.now();
    this.running = true;
    try {
      const { createCertificateRequest } = await import('./certificate-request.ts');
      const { keyPem, csrPem } = await createCertificateRequest(this.current.nodeId);
      saveNextKey(stateDir, keyPem);
      const answer = await channel.renewCertificate(csrPem);
      assertIssued(answer.certificatePem, keyPem, answer.caCertificatePem, this.current.caSha256);
      promoteNext(stateDir, answer.certificatePem);
      this.current = { ...this.current, keyPem, certificatePem: answer.certificatePem };
      log.info('certificate renewed', { notAfter: new Date(this.notAfter * 1000).toISOString() });
      this.options.renewed(this.current);
    } catch (error) {
      log.warn('certificate not renewed', { error });
    } finally {
      this.running = false;
    }
  }
}
