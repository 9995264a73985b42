import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { temporaryFolder } from './folder.ts';

/**
 * Runs a module's text in a process of its own with a disk of one megabyte: its arguments are the root of the repository
 * and the folder. Returns the facts it prints.
 */
export function onFullDisk(t: ExecutionContext, script: string): boolean[] {
  const root = join(import.meta.dirname, '../../../..');
  const unshare = process.getuid?.() === 0 ? ['-m'] : ['-rm'];
  const mounted = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" --input-type=module -e "$3" "$4" "$1"';
  const output = execFileSync(
    'unshare',
    [...unshare, 'sh', '-c', mounted, 'sh', temporaryFolder(t), process.execPath, script, root],
    { cwd: root, encoding: 'utf8' },
  );
  return JSON.parse(output) as boolean[];
}
