// A real browser: Chromium without a window, driven over its debugging protocol.
import { type Browser, chromium } from 'playwright-core';
import { findCommand } from '../../bin/lib/commands.ts';

/** Starts Chromium; close it at the end. It finds nothing but this machine. */
export async function startBrowser(): Promise<Browser> {
  const executablePath = findCommand('chromium');
  if (!executablePath) throw new Error('chromium is missing: npm test installs it');
  return chromium.launch({
    executablePath,
    // The sandbox needs a user that is not root, or namespaces that a container lacks; the pages are ours.
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1',
    ],
  });
}
