// Keeps what authorities say of certificates fresh, for sites that show it to clients. Nothing waits for it: a certificate
// without such an answer is served without. Each responder is asked by itself, so that one that is down holds up its own alone,
// and a pass over what is due ends after half a minute: what it did not come to is left to the next one.
import { create } from '@bufbuild/protobuf';
import { type CertificateStaple, CertificateStapleSchema } from '../../../../proto/gen/svc/node/v1/certificates_pb.js';
import { backoffDelay } from '../../../kit/backoff.ts';
import { errorText, type Log } from '../../../kit/log.ts';
import type { CertificatePack } from '../certificate-pack.ts';
import type { CertificateUses } from '../certificate-uses.ts';
import { type Fingerprint, fingerprintBytes } from '../fingerprint.ts';
import { ASKING, type Asking, askResponder, ResponderDown } from './ask-responder.ts';
import { RETRY_MAX_MS, RETRY_MIN_MS, type Responder, Responders } from './responders.ts';

const CHECK_MS = 5 * 60_000;
/** After an apply, so that what comes together is asked together. */
const SOON_MS = 200;
const FRESH_MS = 60 * 60_000;
/** The longest that a pass over what is due takes. */
const PASS_MS = 30_000;
/** Responders at a time, and questions to one. */
const RESPONDERS = 16;
const QUESTIONS = 4;
/** Certificates that are looked at in one go. */
const SLICE = 100;

/** What is known of a certificate. */
interface State {
  /** Where to ask; undefined while that was not looked up. */
  responder: Responder | undefined;
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
  asking?: Partial<Asking>;
  passMs?: number;
}

/** What is due at a responder. */
type Due = Map<Responder, Fingerprint[]>;

export class Stapler {
  private readonly options: StaplerOptions;
  private readonly asking: Asking;
  private readonly responders = new Responders();
  private readonly states = new Map<Fingerprint, State>();
  private timer: NodeJS.Timeout | undefined;
  private working: Promise<void> | undefined;
  private again = false;
  private stopped = false;

  constructor(options: StaplerOptions) {
    this.options = options;
    this.asking = { ...ASKING, ...options.asking };
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
        .catch((error) => this.options.log.error('OCSP responses cannot be refreshed', { error }))
        .finally(() => {
          this.working = undefined;
          if (!this.stopped) this.schedule(this.again ? SOON_MS : CHECK_MS);
        });
    }, delayMs);
    this.timer.unref();
  }

  private async check(): Promise<void> {
    // No question begins that might end later than the pass.
    const endsAt = performance.now() + (this.options.passMs ?? PASS_MS) - this.asking.totalMs;
    const work = (await this.due()).entries();
    await Promise.all(
      Array.from({ length: RESPONDERS }, async () => {
        for (const [responder, fingerprints] of work) await this.refreshAll(responder, fingerprints, endsAt);
      }),
    );
  }

  private async refreshAll(responder: Responder, fingerprints: readonly Fingerprint[], endsAt: number): Promise<void> {
    const work = fingerprints.values();
    await Promise.all(
      Array.from({ length: QUESTIONS }, async () => {
        for (const fingerprint of work) {
          if (this.stopped || responder.isPaused) return;
          if (performance.now() > endsAt) {
            this.again = true;
            return;
          }
          await this.refresh(fingerprint, responder);
        }
      }),
    );
  }

  /** What to ask whom. */
  private async due(): Promise<Due> {
    const { uses } = this.options;
    const due: Due = new Map();
    let count = 0;
    for (const [fingerprint, use] of uses.entries()) {
      if (++count % SLICE === 0) await new Promise((resolve) => setImmediate(resolve));
      if (this.stopped) break;
      if (use.stapling === 0 || !this.options.pack.has(fingerprint)) continue;
      const state = this.state(fingerprint);
      if (!isDue(state)) continue;
      state.responder ??= await this.responderOf(fingerprint);
      if (!state.responder) state.notBefore = Number.POSITIVE_INFINITY;
      else if (due.has(state.responder)) due.get(state.responder)!.push(fingerprint);
      else due.set(state.responder, [fingerprint]);
    }
    const hosts = new Set<string>();
    for (const [fingerprint, { responder }] of this.states) {
      if (!uses.get(fingerprint)) this.states.delete(fingerprint);
      else if (responder) hosts.add(responder.host);
    }
    this.responders.keepOnly(hosts);
    return due;
  }

  private state(fingerprint: Fingerprint): State {
    let state = this.states.get(fingerprint);
    if (!state) {
      const nextUpdate = Number(this.options.pack.staple(fingerprint)?.nextUpdate ?? 0n);
      state = { responder: undefined, until: nextUpdate * 1000, failures: 0, notBefore: 0 };
      this.states.set(fingerprint, state);
    }
    return state;
  }

  private async responderOf(fingerprint: Fingerprint): Promise<Responder | undefined> {
    const [leaf, issuer] = this.options.pack.chain(fingerprint) ?? [];
    if (!leaf || !issuer) return undefined;
    const url = (await messages()).responderOf(leaf);
    return url === undefined ? undefined : this.responders.of(url);
  }

  private async refresh(fingerprint: Fingerprint, responder: Responder): Promise<void> {
    const { pack, uses, log, grew } = this.options;
    const state = this.states.get(fingerprint)!;
    try {
      const staple = await this.fetch(fingerprint);
      responder.answered();
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
      log.warn('no fresh OCSP response for a certificate', { certificateId, name, error: errorText(error) });
      if (!(error instanceof ResponderDown)) {
        responder.answered();
        return;
      }
      const pauseMs = responder.failed();
      if (pauseMs !== undefined)
        log.warn('OCSP responder is down, agent pauses requests to it', { responder: responder.host, pauseMs });
    }
  }

  /** Undefined when there is nobody to ask. */
  private async fetch(fingerprint: Fingerprint): Promise<CertificateStaple | undefined> {
    const [leaf, issuer] = this.options.pack.chain(fingerprint) ?? [];
    if (!leaf || !issuer) return undefined;
    const { checkAnswer, encodeRequest, responderOf, subjectOf } = await messages();
    const url = responderOf(leaf);
    if (url === undefined) return undefined;
    const subject = subjectOf(leaf, issuer);
    const answer = await askResponder(url, encodeRequest(subject), this.asking);
    const untilMs = checkAnswer(answer, subject, Date.now());
    return create(CertificateStapleSchema, {
      fingerprint: fingerprintBytes(fingerprint),
      ocspResponse: new Uint8Array(answer),
      nextUpdate: BigInt(Math.floor(untilMs / 1000)),
    });
  }
}

function isDue({ until, notBefore }: State): boolean {
  return until - Date.now() < FRESH_MS && notBefore <= performance.now();
}

/** Loaded only where sites want it: the library takes longer to load than the rest. */
function messages(): Promise<typeof import('./ocsp-message.ts')> {
  return import('./ocsp-message.ts');
}
