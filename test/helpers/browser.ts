// A real browser: Chromium without a window, driven over its debugging protocol.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type LaunchOptions } from 'playwright-core';
import { findCommand } from '../../bin/lib/commands.ts';

/** Starts Chromium; close it at the end. It finds nothing but this machine, where hosts matching `hosts` are, too. */
export async function startBrowser(hosts?: string): Promise<Browser> {
  return chromium.launch(options(hosts));
}

/** The same as a profile in which sites may keep no cookies. */
export async function startBrowserWithoutCookies(folder: string, hosts?: string): Promise<BrowserContext> {
  mkdirSync(join(folder, 'Default'), { recursive: true });
  const settings = { profile: { default_content_setting_values: { cookies: 2 } } };
  writeFileSync(join(folder, 'Default', 'Preferences'), JSON.stringify(settings));
  return chromium.launchPersistentContext(folder, options(hosts));
}

function options(hosts?: string): LaunchOptions {
  const executablePath = findCommand('chromium');
  if (!executablePath) throw new Error('chromium is missing: npm test installs it');
  const rules = `${hosts ? `MAP ${hosts} 127.0.0.1, ` : ''}MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1`;
  return {
    executablePath,
    // The sandbox needs a user that is not root, or namespaces that a container lacks; the pages are ours.
    args: ['--no-sandbox', '--disable-dev-shm-usage', `--host-resolver-rules=${rules}`],
  };
}
