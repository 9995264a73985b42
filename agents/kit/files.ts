// Files that are either the old or the new version after a crash: temporary file, fsync, rename, fsync of the folder.
import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { disk } from './disk.ts';

/** Makes a rename or a new name in `folder` survive a power cut. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    disk.syncFolder(fd);
  } finally {
    closeSync(fd);
  }
}

/** Creates `folder` with mode 0700, or takes the rights of others away from an existing one. */
export function ensurePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if ((statSync(folder).mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

/**
 * Replaces `path` by `data`. With `durable` false the content survives a crash of the process, not of the machine. Throws when
 * the disk refuses; the file is then the old one, or the new one whose name may not survive a crash of the machine.
 */
export function writeFileAtomic(path: string, data: string | Uint8Array, mode = 0o600, durable = true): void {
  const temporary = `${path}.${process.pid}.${randomBytes(4).toString('hex')}.tmp`;
  stageFile(temporary, data, mode, durable);
  try {
    disk.rename(temporary, path);
  } catch (error) {
    removeFile(temporary);
    throw error;
  }
  if (durable) syncFolder(dirname(path));
}

/** Writes a file that is not there yet, or leaves none. */
export function stageFile(path: string, data: string | Uint8Array, mode = 0o600, durable = true): void {
  const fd = disk.open(path, 'wx', mode);
  try {
    try {
      writeAll(fd, typeof data === 'string' ? Buffer.from(data) : data);
      if (durable) disk.sync(fd);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    removeFile(path);
    throw error;
  }
}

/** Writes all of `bytes`, however many calls that takes. */
export function writeAll(fd: number, bytes: Uint8Array, position: number | null = null): void {
  let written = 0;
  while (written < bytes.length) {
    const at = position === null ? null : position + written;
    written += disk.write(fd, bytes, written, bytes.length - written, at);
  }
}

/** Content of a text file, or undefined when there is none. */
export function readTextIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Removes a file; a missing one is fine. */
export function removeFile(path: string): void {
  try {
    disk.unlink(path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}
