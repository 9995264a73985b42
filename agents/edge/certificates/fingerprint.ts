// Fingerprints as keys of maps: 32 bytes as Latin-1 text, which takes a third of what an array of bytes does.

/** SHA-256 of a leaf in DER, as text of 32 characters. */
export type Fingerprint = string;

export const FINGERPRINT_BYTES = 32;

export function fingerprintOf(bytes: Uint8Array): Fingerprint {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

export function fingerprintBytes(fingerprint: Fingerprint): Uint8Array {
  return new Uint8Array(Buffer.from(fingerprint, 'latin1'));
}
