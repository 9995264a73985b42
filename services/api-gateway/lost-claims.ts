// Claims of idempotency keys of which nobody knows what became: the database stood still while they were made or given
// back. They are given back when it answers again; else their keys would be in progress until ten minutes are over.
import type { IdempotencyClaim } from '../../runtime/call.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { releaseClaims } from './idempotency.ts';

const EVERY_MS = 1_000;
/** Others are taken over after ten minutes, as those of a process that was killed. */
const MOST_CLAIMS = 1_000;
/** Looks at a database that answers: what it had received before it stood still may come a little after that. */
const LOOKS = 30;
const LONGEST_MS = 600_000;

interface Lost {
  claim: IdempotencyClaim;
  until: number;
  looks: number;
}

export class LostClaims {
  readonly #runtime: Runtime;
  #lost: Lost[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Gives the claim back some time later, whether it was made or not. */
  add(claim: IdempotencyClaim): void {
    if (this.#lost.length >= MOST_CLAIMS) return;
    this.#lost.push({ claim, until: performance.now() + LONGEST_MS, looks: LOOKS });
    this.#timer ??= this.#later();
  }

  #later(): NodeJS.Timeout {
    return setTimeout(() => void this.#giveBack(), EVERY_MS).unref();
  }

  async #giveBack(): Promise<void> {
    const asked = [...this.#lost];
    try {
      const released = await releaseClaims(
        this.#runtime,
        asked.map(({ claim }) => claim),
      );
      const done = new Set(released);
      for (const lost of asked) lost.looks = done.has(lost.claim.attempt) ? 0 : lost.looks - 1;
    } catch (err) {
      this.#runtime.log.debug({ err, claims: asked.length }, 'lost idempotency keys are still claimed');
    }
    const now = performance.now();
    this.#lost = this.#lost.filter(({ looks, until }) => looks > 0 && until > now);
    this.#timer = this.#lost.length > 0 && !this.#runtime.stopping.aborted ? this.#later() : null;
  }
}
