// Password hashes: scrypt, with its parameters in the hash, so that they can be raised later.
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { fail } from '../contract/errors.ts';

const COST = 2 ** 15;
const BLOCK_SIZE = 8;
const PARALLELIZATION = 1;
const KEY_BYTES = 32;
const SALT_BYTES = 16;
/** Each takes 32 MiB and about 0.1 s of a core. */
const MOST_AT_ONCE = 16;

export class Passwords {
  #running = 0;
  /** Compared with where there is no user, so that it takes as long. */
  readonly #nobody = `scrypt$${COST}$${BLOCK_SIZE}$${PARALLELIZATION}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

  async hash(password: string): Promise<string> {
    const salt = randomBytes(SALT_BYTES);
    const key = await this.#derive(password, salt, KEY_BYTES, COST, BLOCK_SIZE, PARALLELIZATION);
    const parts = ['scrypt', COST, BLOCK_SIZE, PARALLELIZATION, salt.toString('base64url'), key.toString('base64url')];
    return parts.join('$');
  }

  /** Whether the password is the hash's; without a hash it takes as long and is not. */
  async matches(password: string, hash: string | undefined): Promise<boolean> {
    const [, cost, blockSize, parallelization, salt, key] = (hash ?? this.#nobody).split('$');
    const expected = Buffer.from(key!, 'base64url');
    const actual = await this.#derive(
      password,
      Buffer.from(salt!, 'base64url'),
      expected.length,
      Number(cost),
      Number(blockSize),
      Number(parallelization),
    );
    return timingSafeEqual(actual, expected) && hash !== undefined;
  }

  async #derive(password: string, salt: Buffer, length: number, N: number, r: number, p: number): Promise<Buffer> {
    if (this.#running >= MOST_AT_ONCE) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 2 });
    this.#running++;
    try {
      return await derive(password.normalize('NFKC'), salt, length, { N, r, p, maxmem: 256 * N * r });
    } finally {
      this.#running--;
    }
  }
}

function derive(password: string, salt: Buffer, length: number, options: ScryptOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, length, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}
