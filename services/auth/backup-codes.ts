// Backup codes, `xxxxx-xxxxx`: about 49 bits each, so that scrypt makes guessing from a stolen database hopeless. All of
// a user have one salt: a code is hashed once and then looked up.
import { randomInt } from 'node:crypto';
import type { Passwords } from '../../runtime/passwords.ts';

const COUNT = 10;
const HALF = 5;
/** About 10 ms each: times 2^49 codes. */
const COST = 2 ** 12;
/** Without 0, 1, i, l and o, which people mistake for one another. */
const ALPHABET = '23456789abcdefghjkmnpqrstuvwxyz';

export function newBackupCodes(): string[] {
  return Array.from({ length: COUNT }, () => `${randomText()}-${randomText()}`);
}

function randomText(): string {
  return Array.from({ length: HALF }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
}

/** As people type it: capitals, spaces and the dash do not count. */
function plain(code: string): string {
  return code.toLowerCase().replace(/[\s-]/g, '');
}

export async function hashBackupCodes(passwords: Passwords, codes: readonly string[]): Promise<string[]> {
  const first = await passwords.hash(plain(codes[0]!), COST);
  return [first, ...(await Promise.all(codes.slice(1).map((code) => hashBackupCode(passwords, code, first))))];
}

/** The hash of a code with the salt of another. */
export function hashBackupCode(passwords: Passwords, code: string, other: string): Promise<string> {
  return passwords.hashLike(plain(code), other);
}
