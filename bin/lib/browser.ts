// A real browser: Chromium without a window, driven over its debugging protocol.
import { type Browser, chromium, type LaunchOptions } from 'playwright-core';
import { findCommand } from './commands.ts';

/** Starts Chromium; close it at the end. It finds nothing but this machine. */
export async function startBrowser(): Promise<Browser> {
  return chromium.launch(browserOptions(['chromium']));
}

/**
 * Options of the first of the programs that is there. The browser finds nothing but this machine, where hosts matching
 * `hosts` are, too. Throws when none is there.
 */
export function browserOptions(programs: readonly string[], hosts?: string): LaunchOptions {
  const executablePath = programs.map((name) => findCommand(name)).find((path) => path !== undefined);
  if (!executablePath) throw new Error('chromium is missing: npm test installs it');
  const rules = `${hosts ? `MAP ${hosts} 127.0.0.1, ` : ''}MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1`;
  return {
    executablePath,
    // The sandbox needs a user that is not root, or namespaces that a container lacks; the pages are ours.
    args: ['--no-sandbox', '--disable-dev-shm-usage', `--host-resolver-rules=${rules}`],
  };
}
