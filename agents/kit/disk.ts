// The calls that change files. Everything that must survive a crash goes through them, so that a test can make any of them fail.
import {
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { promisify } from 'node:util';

const fdatasyncSoon = promisify(fdatasync);

export const disk = {
  open: openSync,
  write: (fd: number, bytes: Uint8Array, from: number, length: number, position: number | null): number =>
    writeSync(fd, bytes, from, length, position),
  truncate: ftruncateSync,
  /** Content of a file, and what is needed to find it. */
  sync: fdatasyncSync,
  syncSoon: (fd: number): Promise<void> => fdatasyncSoon(fd),
  /** Names in a folder. */
  syncFolder: fsyncSync,
  rename: renameSync,
  link: linkSync,
  unlink: unlinkSync,
};
