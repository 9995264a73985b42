// The browser of tests, and the same with another profile.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium } from 'playwright-core';
import { browserOptions } from '../../bin/lib/browser.ts';

/** The same engine without the frame of a window, which takes more processor time than the pages in it. */
const PROGRAMS = ['chromium-headless-shell', 'chromium'];

/** Starts Chromium; close it at the end. It finds nothing but this machine, where hosts matching `hosts` are, too. */
export async function startBrowser(hosts?: string): Promise<Browser> {
  return chromium.launch(browserOptions(PROGRAMS, hosts));
}

export interface HttpsBrowser {
  /** host:port of the site, which is on this machine. */
  site: string;
  /** Base64 of the SHA-256 of a public key whose certificate counts, whoever issued it; nothing else is let through. */
  spki: string;
  /** HTTP/3 from the first request on: what a private authority issued gets it in no other way. */
  http3: boolean;
}

/** A browser of somebody who trusts the certificate of one site. */
export async function startHttpsBrowser({ site, spki, http3 }: HttpsBrowser): Promise<Browser> {
  const options = browserOptions(PROGRAMS, site.split(':')[0]);
  const more = [
    `--ignore-certificate-errors-spki-list=${spki}`,
    ...(http3 ? [`--origin-to-force-quic-on=${site}`] : []),
  ];
  return chromium.launch({ ...options, args: [...(options.args ?? []), ...more] });
}

/** The same as a profile in which sites may keep no cookies; settings of profiles are the whole Chromium's. */
export async function startBrowserWithoutCookies(folder: string, hosts?: string): Promise<BrowserContext> {
  mkdirSync(join(folder, 'Default'), { recursive: true });
  const settings = { profile: { default_content_setting_values: { cookies: 2 } } };
  writeFileSync(join(folder, 'Default', 'Preferences'), JSON.stringify(settings));
  return chromium.launchPersistentContext(folder, browserOptions(['chromium'], hosts));
}
