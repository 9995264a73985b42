// The value of an Idempotency-Key header: 1 to 255 printable ASCII characters, bare or as a string of RFC 8941.
import { fail } from '../../contract/errors.ts';

const BARE = /^[\x20-\x7e]{1,255}$/;
const QUOTED = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/;

/** The longest header that can hold a key, each character escaped, with some blanks around. */
const LONGEST_HEADER = 1024;

/** The key itself; IDEMPOTENCY_KEY_INVALID for anything else. */
export function parseIdempotencyKey(header: string): string {
  if (header.length > LONGEST_HEADER) fail('IDEMPOTENCY_KEY_INVALID');
  // Not trim(): what it takes for white space beyond these two is no ASCII, and makes the key malformed.
  const value = header.replace(/^[ \t]+|[ \t]+$/g, '');
  if (!value.startsWith('"')) return BARE.test(value) ? value : fail('IDEMPOTENCY_KEY_INVALID');
  const quoted = QUOTED.exec(value);
  if (!quoted) fail('IDEMPOTENCY_KEY_INVALID');
  const key = quoted[1]!.replace(/\\(["\\])/g, '$1');
  return BARE.test(key) ? key : fail('IDEMPOTENCY_KEY_INVALID');
}
