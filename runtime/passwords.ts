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
  readonly #onDerive: () => void;
  /** Compared with where there is no user, so that it takes as long. */
  readonly #nobody = `scrypt$${COST}$${BLOCK_SIZE}$${PARALLELIZATION}$${'A'.repeat(22)}$${'A'.repeat(43)}`;

  /** `onDerive` is told of every derivation, the costly part. */
  constructor(onDerive: () => void = () => undefined) {
    this.#onDerive = onDerive;
  }

  /** `cost`: N of scrypt; less than the default only for what is random. */
  async hash(password: string, cost = COST): Promise<string> {
    const salt = randomBytes(SALT_BYTES).toString('base64url');
    const parameters = ['scrypt', cost, BLOCK_SIZE, PARALLELIZATION, salt];
    return this.hashLike(password, [...parameters, Buffer.alloc(KEY_BYTES).toString('base64url')].join('$'));
  }

  /** The hash that the password has with the parameters and the salt of another hash. */
  async hashLike(password: string, other: string): Promise<string> {
    const parts = other.split('$');
    return [...parts.slice(0, -1), (await this.#deriveLike(password, parts)).toString('base64url')].join('$');
  }

  /** Whether the password is the hash's; without a hash it takes as long and is not. */
  async matches(password: string, hash: string | undefined): Promise<boolean> {
    const parts = (hash ?? this.#nobody).split('$');
    const expected = Buffer.from(parts[5]!, 'base64url');
    const actual = await this.#deriveLike(password, parts);
    return timingSafeEqual(actual, expected) && hash !== undefined;
  }

  async #deriveLike(password: string, [, cost, blockSize, parallelization, salt, key]: string[]): Promise<Buffer> {
    return this.#derive(
      password,
      Buffer.from(salt!, 'base64url'),
      Buffer.from(key!, 'base64url').length,
      Number(cost),
      Number(blockSize),
      Number(parallelization),
    );
  }

  async #derive(password: string, salt: Buffer, length: number, N: number, r: number, p: number): Promise<Buffer> {
    if (this.#running >= MOST_AT_ONCE) fail('SERVICE_UNAVAILABLE', { retryAfterSeconds: 2 });
    this.#running++;
    this.#onDerive();
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
