// The browser of tests, and the same with another profile.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { browserOptions } from '../../bench/lib/browser.ts';

/** The same engine without the frame of a window, which takes more processor time than the pages in it. */
const PROGRAMS = ['chromium-headless-shell', 'chromium'];

/** Starts Chromium; close it at the end. It finds nothing but this machine, where hosts matching `hosts` are, too. */
export async function startBrowser(hosts?: string): Promise<Browser> {
  return chromium.launch(browserOptions(PROGRAMS, hosts));
}

/** The same as a profile in which sites may keep no cookies; settings of profiles are the whole Chromium's. */
export async function startBrowserWithoutCookies(folder: string, hosts?: string): Promise<BrowserContext> {
  mkdirSync(join(folder, 'Default'), { recursive: true });
  const settings = { profile: { default_content_setting_values: { cookies: 2 } } };
  writeFileSync(join(folder, 'Default', 'Preferences'), JSON.stringify(settings));
  return chromium.launchPersistentContext(folder, browserOptions(['chromium'], hosts));
}
