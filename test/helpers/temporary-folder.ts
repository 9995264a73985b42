import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';

/** An empty folder that is deleted when the test ends. */
export function temporaryFolder(t: ExecutionContext): string {
  const path = mkdtempSync(join(tmpdir(), 'svc-test-'));
  t.teardown(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
