// Envelope encryption under SVC_MASTER_KEY: a random data key per secret, wrapped by the master key.

/** Where a secret is stored; bound to the ciphertext, so that one cannot be moved to another row. */
export interface SecretPlace {
  table: string;
  column: string;
  row: string;
}

export interface Sealer {
  /** First 16 hex digits of SHA-256 of the master key: a database written under another key is refused at start. */
  readonly fingerprint: string;
  seal(secret: Uint8Array, place: SecretPlace): string;
  /** Throws when the key, the place or the ciphertext is another. */
  open(sealed: string, place: SecretPlace): Buffer;
}
