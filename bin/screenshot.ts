// `npm run screenshot`: the picture of the README, taken from the running demo.
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { browserOptions } from './lib/browser.ts';
import { type DemoFacts, readDemoFacts } from './lib/demo-state.ts';
import { Refusal, report, say } from './lib/progress.ts';
import { root } from './lib/root.ts';

const HELP = `Usage: npm run screenshot [-- --data DIR] [--path PATH] [--shows SELECTOR] [--out FILE]

Signs in to the running demo with Chromium and writes a picture of one page of the Web UI.

  --data DIR        data folder of the demo; default data/demo
  --path PATH       page of the Web UI; default / (the overview)
  --shows SELECTOR  what the page shows once it is complete; default canvas (a chart)
  --out FILE        default docs/images/console.png. At most 120 KiB: it is in the repository.`;

const MOST_BYTES = 120 * 1024;
const VIEWPORT = { width: 1200, height: 750 };

/** Writes the page at `path` as the operator of the demo sees it. */
async function takePicture(
  { consoleUrl, operator }: DemoFacts,
  path: string,
  shows: string,
  file: string,
): Promise<void> {
  const browser = await chromium.launch(browserOptions(['chromium-headless-shell', 'chromium']));
  try {
    const page = await browser.newPage({ viewport: VIEWPORT, colorScheme: 'light', locale: 'en-US' });
    const response = await page.request.post(`${consoleUrl}/api/auth/sign-in/email`, {
      data: { email: operator.email, password: operator.password },
      headers: { origin: consoleUrl },
    });
    if (!response.ok()) throw new Refusal(`the console refuses the demo's operator: ${await response.text()}`);
    await page.goto(`${consoleUrl}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    // Live updates keep a connection open, so the network is never idle: wait for the last part, which loads by itself.
    await page.locator(shows).first().waitFor();
    await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
    await page.screenshot({ path: file, animations: 'disabled' });
  } finally {
    await browser.close();
  }
}

try {
  const { values } = parseArgs({
    options: {
      data: { type: 'string', default: 'data/demo' },
      path: { type: 'string', default: '/' },
      shows: { type: 'string', default: 'canvas' },
      out: { type: 'string', default: 'docs/images/console.png' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    say(HELP);
  } else {
    const file = resolve(root, values.out);
    await takePicture(readDemoFacts(resolve(root, values.data)), values.path, values.shows, file);
    const { size } = statSync(file);
    say(`${values.out}: ${Math.round(size / 1024)} KiB`);
    if (size > MOST_BYTES) throw new Refusal(`it is larger than ${MOST_BYTES / 1024} KiB: choose a quieter page`);
  }
} catch (error) {
  report(error);
}
