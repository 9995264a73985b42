// Finding and running other programs.
import { execFile, spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

export const run = promisify(execFile);

// Package folders of an unprivileged user's PATH often lack these.
const ALSO = ['/usr/local/go/bin', '/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Path of the first executable of that name on PATH (or in `also`), or undefined. */
export function findCommand(name: string, also: string[] = ALSO): string | undefined {
  for (const folder of [...(process.env.PATH ?? '').split(delimiter), ...also]) {
    if (folder === '') continue;
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // not in this folder
    }
  }
  return undefined;
}

/** Words to put before a command that needs root: [] as root, ['sudo', '-n'] when no password is asked, else undefined. */
export function rootPrefix(): string[] | undefined {
  if (process.getuid?.() === 0) return [];
  const sudo = findCommand('sudo');
  if (sudo && spawnSync(sudo, ['-n', 'true'], { stdio: 'ignore', timeout: 5000 }).status === 0) return [sudo, '-n'];
  return undefined;
}
