// Failed enrollments of an address: beyond the limit its requests are rejected before they cost a transaction. Tokens are
// used once, so that a successful enrollment needs no limit.
import { Code, ConnectError } from '@connectrpc/connect';
import { Bucket } from './bucket.ts';

const FAILURES_A_MINUTE = 30;
const MOST_ADDRESSES = 20_000;

export class EnrollmentAttempts {
  readonly #failures = new Map<string, Bucket>();

  /** Throws resource_exhausted for an address with too many failures. */
  async run<T>(address: string, enroll: () => Promise<T>): Promise<T> {
    if (this.#failures.get(address)?.open === false) {
      throw new ConnectError(
        'too many failed enrollments from this address; retry in a minute',
        Code.ResourceExhausted,
      );
    }
    try {
      return await enroll();
    } catch (error) {
      if (error instanceof ConnectError) this.#count(address);
      throw error;
    }
  }

  #count(address: string): void {
    let failures = this.#failures.get(address);
    if (!failures) {
      if (this.#failures.size >= MOST_ADDRESSES) this.#forget();
      failures = new Bucket(FAILURES_A_MINUTE);
      this.#failures.set(address, failures);
    }
    failures.spend(1);
  }

  /** Of addresses that may try as often as new ones; without any, the one that failed first. */
  #forget(): void {
    const [first] = this.#failures.keys();
    for (const [address, failures] of this.#failures) if (failures.full) this.#failures.delete(address);
    if (this.#failures.size >= MOST_ADDRESSES && first !== undefined) this.#failures.delete(first);
  }
}
