// Locks that a dead owner cannot keep: an abstract unix socket lives exactly as long as the process that bound it. Its
// namespace is the network namespace, which is right for addresses and tables; for folders the name holds device and inode.
import { statSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { isErrno } from './files.ts';

export interface Lock {
  release(): Promise<void>;
}

/** Takes the lock `name` of this network namespace; undefined when another process has it. */
export function tryLock(name: string): Promise<Lock | undefined> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer((socket) => socket.destroy());
    server.once('error', (error) => {
      if (isErrno(error, 'EADDRINUSE')) resolve(undefined);
      else reject(error);
    });
    server.listen({ path: `\0svc-lock/${name}` }, () => {
      server.unref();
      resolve({ release: () => new Promise((done) => server.close(() => done())) });
    });
  });
}

/** Name of the lock of an existing folder; the same for every path that leads to it. */
export function folderLockName(kind: string, folder: string): string {
  const { dev, ino } = statSync(folder);
  return `${kind}/${dev}:${ino}`;
}
