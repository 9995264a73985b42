// The secret of this node's QUIC: a Caddy that takes over from another tells its clients at once that their connections are
// gone, which needs the same secret.
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { isErrno, writeFileAtomic } from '../../kit/files.ts';
import { errorText, type Log } from '../../kit/log.ts';

const KEY_BYTES = 32;

/** Makes the file where it is missing or no key. Without it each Caddy has a secret of its own, and clients wait longer. */
export function ensureQuicKey(path: string, log: Log): void {
  try {
    if (sizeOf(path) !== KEY_BYTES) writeFileAtomic(path, randomBytes(KEY_BYTES));
  } catch (error) {
    log.error('QUIC key not stored', { path, reason: errorText(error) });
  }
}

/** In bytes, -1 where there is no file. */
function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return -1;
    throw error;
  }
}
