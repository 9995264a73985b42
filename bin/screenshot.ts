// `npm run screenshot`: the picture of the README, taken from the running demo.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { browserOptions } from './lib/browser.ts';
import { readDemoFacts } from './lib/demo-state.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: npm run screenshot [-- --data DIR] [--path PATH] [--out FILE]

Signs in to the running demo with Chromium and writes a picture of one page of the Web UI.

  --data DIR    data folder of the demo; default data/demo
  --path PATH   page of the Web UI; default / (the overview)
  --out FILE    default docs/images/console.png. At most 120 KiB: it is in the repository.`;

const MOST_BYTES = 120 * 1024;
const VIEWPORT = { width: 1200, height: 750 };

async function signedIn(page: Page, url: string, operator: { email: string; password: string }): Promise<void> {
  const response = await page.request.post(`${url}/api/auth/sign-in/email`, {
    data: operator,
    headers: { origin: url },
  });
  if (!response.ok()) throw new Refusal(`the console refuses the demo's operator: ${await response.text()}`);
}

try {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: 'data/demo' },
      path: { type: 'string', default: '/' },
      out: { type: 'string', default: 'docs/images/console.png' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    say(HELP);
  } else {
    const { consoleUrl, operator } = readDemoFacts(resolve(root, values.data));
    const browser = await chromium.launch(browserOptions(['chromium-headless-shell', 'chromium']));
    const page = await browser.newPage({ viewport: VIEWPORT, colorScheme: 'light', locale: 'en-US' });
    await signedIn(page, consoleUrl, { email: operator.email, password: operator.password });
    await page.goto(`${consoleUrl}${values.path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    // Live updates keep a connection open, so the network is never idle: wait until nothing is loading any more.
    await page.waitForFunction('document.querySelector(\'[aria-busy="true"]\') === null');
    const file = resolve(root, values.out);
    await page.screenshot({ path: file, animations: 'disabled' });
    await browser.close();
    const { size } = statSync(file);
    say(`${values.out}: ${Math.round(size / 1024)} KiB`);
    if (size > MOST_BYTES) throw new Refusal(`it is larger than ${MOST_BYTES / 1024} KiB: choose a quieter page`);
  }
} catch (error) {
  report(error);
}
