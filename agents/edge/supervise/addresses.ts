// One node per listen address. Caddy shares addresses with other processes of its user (SO_REUSEPORT): two of them would both
// start, and each would get a part of the connections.
import { createHash } from 'node:crypto';
import { readlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { isErrno } from '../../kit/files.ts';
import { type Lock, lockFile } from '../../kit/locks.ts';
import { openUserFolder } from '../run-folder.ts';

/**
 * Keeps other nodes of this user off an address, also while Caddy does not listen; undefined when one of them has it. Users
 * cannot share an address, so that a folder of the user is the place. Without one only the trial excludes.
 */
export function lockAddress(address: string): Lock | undefined {
  const folder = openUserFolder();
  if (folder === undefined) return { release: () => undefined, remove: () => undefined };
  const name = `${readlinkSync('/proc/self/ns/net')} ${address}`;
  return lockFile(join(folder, `listen-${createHash('sha256').update(name).digest('hex').slice(0, 16)}`));
}

/** Whether a process listens on "[address]:port". Everything else that is wrong with the address is left to Caddy to say. */
export function isTaken(address: string): Promise<boolean> {
  const split = address.lastIndexOf(':');
  const host = address.slice(0, split).replace(/^\[|\]$/g, '');
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error) => resolve(isErrno(error, 'EADDRINUSE')));
    server.listen({ port: Number(address.slice(split + 1)), ...(host === '' ? {} : { host }) }, () =>
      server.close(() => resolve(false)),
    );
  });
}
