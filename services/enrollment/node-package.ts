// Whether this console offers what its installer installs.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** `downloadsDir` is the folder of SVC_DOWNLOADS_DIR. */
export async function offersNodePackage(downloadsDir: string | null): Promise<boolean> {
  if (downloadsDir === null) return false;
  const latest = await readFile(join(downloadsDir, 'svc-edge', 'latest'), 'utf8').catch(() => '');
  return latest !== '';
}
