// The browser of tests, and the same with another profile.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type BrowserContext, chromium } from 'playwright-core';
import { browserOptions, startBrowser } from '../../bench/lib/browser.ts';

export { startBrowser };

/** The same as a profile in which sites may keep no cookies. */
export async function startBrowserWithoutCookies(folder: string, hosts?: string): Promise<BrowserContext> {
  mkdirSync(join(folder, 'Default'), { recursive: true });
  const settings = { profile: { default_content_setting_values: { cookies: 2 } } };
  writeFileSync(join(folder, 'Default', 'Preferences'), JSON.stringify(settings));
  return chromium.launchPersistentContext(folder, browserOptions(hosts));
}
