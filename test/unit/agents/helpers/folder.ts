// A folder of a test, removed at its end.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';

export function temporaryFolder(t: ExecutionContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-edge-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Resolves when `condition` holds; fails the test when it does not within the limit. */
export async function until(
  t: ExecutionContext,
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = 60_000,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await condition())) {
    if (performance.now() > end) {
      t.fail(`not reached: ${what}`);
      throw new Error(`not reached: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
