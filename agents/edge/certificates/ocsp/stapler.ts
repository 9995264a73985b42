// Keeps what authorities say of certificates fresh, for sites that show it to clients. Nothing waits for it: a certificate
// without such an answer is served without.
import { create } from '@bufbuild/protobuf';
import { type CertificateStaple, CertificateStapleSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { backoffDelay } from '../../../kit/backoff.ts';
import { errorText, type Log } from '../../../kit/log.ts';
import type { CertificatePack } from '../certificate-pack.ts';
import type { CertificateUses } from '../certificate-uses.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import { askResponder, type Resolve } from './ask-responder.ts';

const CHECK_MS = 5 * 60_000;
/** After an apply, so that what comes together is asked together. */
const SOON_MS = 200;
const FRESH_MS = 60 * 60_000;
const PARALLEL = 4;
const RETRY_MIN_MS = 60_000;
const RETRY_MAX_MS = 60 * 60_000;

/** What is known of a certificate. */
interface State {
  /** Until when its answer holds, Unix ms; 0 = there is none. */
  until: number;
  failures: number;
  /** performance.now() before which nobody is asked. */
  notBefore: number;
}

export interface StaplerOptions {
  pack: CertificatePack;
  uses: CertificateUses;
  log: Log;
  /** The pack has more. */
  grew: () => void;
  /** For tests. */
  resolve?: Resolve;
}

export class Stapler {
  private readonly options: StaplerOptions;
  private readonly states = new Map<Fingerprint, State>();
  private timer: NodeJS.Timeout | undefined;
  private working: Promise<void> | undefined;
  private again = false;
  private stopped = false;

  constructor(options: StaplerOptions) {
    this.options = options;
  }

  /** Certificates came, or sites want them stapled. */
  soon(): void {
    if (this.stopped) return;
    if (this.working) {
      this.again = true;
      return;
    }
    this.schedule(SOON_MS);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    clearTimeout(this.timer);
    await this.working;
  }

  private schedule(delayMs: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.again = false;
      this.working = this.check()
        .catch((error) => this.options.log.error('answers of authorities cannot be kept fresh', { error }))
        .finally(() => {
          this.working = undefined;
          if (!this.stopped) this.schedule(this.again ? SOON_MS : CHECK_MS);
        });
    }, delayMs);
    this.timer.unref();
  }

  private async check(): Promise<void> {
    const { uses, pack } = this.options;
    const due: Fingerprint[] = [];
    for (const [fingerprint, use] of uses.entries())
      if (use.stapling > 0 && pack.has(fingerprint) && this.isDue(fingerprint)) due.push(fingerprint);
    for (const fingerprint of this.states.keys()) if (!uses.get(fingerprint)) this.states.delete(fingerprint);
    const work = due.values();
    await Promise.all(
      Array.from({ length: PARALLEL }, async () => {
        for (const fingerprint of work) {
          if (this.stopped) return;
          await this.refresh(fingerprint);
        }
      }),
    );
  }

  private isDue(fingerprint: Fingerprint): boolean {
    let state = this.states.get(fingerprint);
    if (!state) {
      const nextUpdate = Number(this.options.pack.staple(fingerprint)?.nextUpdate ?? 0n);
      state = { until: nextUpdate * 1000, failures: 0, notBefore: 0 };
      this.states.set(fingerprint, state);
    }
    return state.until - Date.now() < FRESH_MS && state.notBefore <= performance.now();
  }

  private async refresh(fingerprint: Fingerprint): Promise<void> {
    const { pack, uses, log, grew } = this.options;
    const state = this.states.get(fingerprint)!;
    try {
      const staple = await this.fetch(fingerprint);
      if (!staple || this.stopped) {
        state.notBefore = Number.POSITIVE_INFINITY;
        return;
      }
      await pack.putStaples([staple]);
      state.until = Number(staple.nextUpdate) * 1000;
      state.failures = 0;
      // An answer that holds for less than an hour is not asked for without a pause.
      state.notBefore = performance.now() + RETRY_MIN_MS;
      grew();
    } catch (error) {
      const delayMs = backoffDelay(state.failures++, Math.random, RETRY_MIN_MS, RETRY_MAX_MS);
      state.notBefore = performance.now() + delayMs;
      const { certificateId, name } = uses.get(fingerprint) ?? {};
      log.warn('no fresh answer of the authority of a certificate', { certificateId, name, error: errorText(error) });
    }
  }

  /** Undefined when there is nobody to ask. */
  private async fetch(fingerprint: Fingerprint): Promise<CertificateStaple | undefined> {
    const [leaf, issuer] = this.options.pack.chain(fingerprint) ?? [];
    if (!leaf || !issuer) return undefined;
    // Loaded only where sites want it: the library takes longer to load than the rest.
    const { checkAnswer, encodeRequest, responderOf, subjectOf } = await import('./ocsp-message.ts');
    const url = responderOf(leaf);
    if (url === undefined) return undefined;
    const subject = subjectOf(leaf, issuer);
    const answer = await askResponder(url, encodeRequest(subject), this.options.resolve);
    const untilMs = checkAnswer(answer, subject, Date.now());
    return create(CertificateStapleSchema, {
      fingerprint: fingerprintBytes(fingerprint),
      ocspResponse: new Uint8Array(answer),
      nextUpdate: BigInt(Math.floor(untilMs / 1000)),
    });
  }
}
