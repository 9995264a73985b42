// The challenge pages in real Chromium against a real edge: what a visitor sees, and that the pages' own scripts pass.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { startBrowser, startBrowserWithoutCookies } from '../helpers/browser.ts';
import { type ChallengeEdge, LEVELS, startChallengeEdge, withAnswer } from '../helpers/challenge-edge.ts';
import { root } from '../helpers/documents.ts';
import { edgeSend } from '../helpers/edge-request.ts';
import { eventually } from '../helpers/eventually.ts';

const HOSTS = '*.bench.example';
const VERIFY = '**/.svc/challenge/verify';
const WORKER = '**/.svc/challenge/worker.js*';
const PHONE = { width: 375, height: 667 };
const screenshots = join(root, '.cache', 'challenge-pages');
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const TITLES = {
  'en-US': {
    cookie302: 'Cookies are needed',
    js: 'Checking your browser',
    pow: 'Checking your browser',
    captcha: 'Please show that you are human',
  },
  'zh-CN': {
    cookie302: '需要启用 Cookie',
    js: '正在检查您的浏览器',
    pow: '正在检查您的浏览器',
    captcha: '请确认您不是机器人',
  },
} as const;
const LOCALES = ['en-US', 'zh-CN'] as const;

let edge: ChallengeEdge;
let browser: Browser;

test.before(async () => {
  edge = await startChallengeEdge();
  browser = await startBrowser(HOSTS);
  mkdirSync(screenshots, { recursive: true });
});

test.after.always(async () => {
  await browser?.close();
  await edge?.stop();
});

let visitors = 0;
const problems: string[] = [];

/** A page of a new visitor, by a browser of its own name: nodes tell visitors apart by it. */
async function visit(t: ExecutionContext, options: BrowserContextOptions = {}): Promise<Page> {
  const userAgent = `Visitor/${++visitors}`;
  const context = await browser.newContext({ locale: 'en-US', userAgent, ...options });
  t.teardown(() => context.close());
  return watched(await context.newPage());
}

/** Notes what goes wrong in a page, also what its own policy keeps it from. */
function watched(page: Page): Page {
  page.on('console', (message) => {
    if (/Content.Security.Policy|Uncaught/i.test(message.text())) problems.push(message.text());
  });
  page.on('pageerror', (error) => problems.push(error.stack ?? error.message));
  page.setDefaultTimeout(30_000);
  return page;
}

test.afterEach((t) => {
  t.deepEqual(problems.splice(0), []);
});

async function arrived(t: ExecutionContext, page: Page): Promise<void> {
  await page.getByRole('heading', { name: 'The site' }).waitFor();
  t.pass();
}

/** A request of the same visitor beside the page: same address, same browser, no cookies. */
const beside = async (page: Page, url: string, body?: string) => {
  const { hostname, port, pathname, search } = new URL(url);
  const headers = { 'user-agent': (await page.evaluate('navigator.userAgent')) as string };
  const request = { headers, path: pathname + search, ...(body === undefined ? {} : { method: 'POST', body }) };
  return edgeSend({ host: '127.0.0.1', port: Number(port) }, hostname, request);
};
const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent();

/** Answers never arrive, so a page that works by itself stays. */
const hold = (page: Page) => page.route(VERIFY, () => undefined);

/** Loads a level's page, of cookie302 the one for those who lose cookies. */
async function showPage(page: Page, level: (typeof LEVELS)[number], path = '/'): Promise<void> {
  if (level !== 'cookie302') {
    await page.goto(edge.url(level, path));
    return;
  }
  for (let visits = 0; visits < 3; visits++) await beside(page, edge.url(level, path));
  await page.goto(edge.url(level, path));
}

for (const locale of LOCALES) {
  for (const level of LEVELS.filter((each) => each !== 'captcha')) {
    test.serial(`${level}: the page's own script leads to the site, ${locale}`, async (t) => {
      const page = await visit(t, { locale });
      const statuses: number[] = [];
      page.on('response', (response) => {
        if (response.request().isNavigationRequest()) statuses.push(response.status());
      });
      await page.goto(edge.url(level, '/deep/page?a=%2F&b=1#part'));
      await arrived(t, page);
      t.is(await page.getByRole('paragraph').textContent(), '/deep/page?a=%2F&b=1');
      t.true(page.url().endsWith('/deep/page?a=%2F&b=1#part'), page.url());
      t.deepEqual(statuses, level === 'cookie302' ? [302, 200] : [403, 200]);
      const cookies = await page.context().cookies();
      for (const name of ['__ew_pass', 'ew_pass_http']) {
        const cookie = cookies.find((each) => each.name === name);
        t.like(cookie, { path: '/', httpOnly: true, sameSite: 'Lax', secure: false });
      }
      // Nothing is asked a second time.
      t.is((await page.goto(edge.url(level, '/other')))?.status(), 200);
    });
  }

  test.serial(`captcha: the computed alternative leads to the site, ${locale}`, async (t) => {
    const page = await visit(t, { locale });
    await page.goto(edge.url('captcha', '/deep?x=1'));
    t.is(await heading(page), TITLES[locale].captcha);
    await page.getByRole('button').nth(1).click();
    await arrived(t, page);
    t.is(await page.getByRole('paragraph').textContent(), '/deep?x=1');
  });
}

/** By the keyboard alone, once the page has put the cursor into its field. */
async function typeAnswer(page: Page, answer: string): Promise<void> {
  await page.locator('input[name=a]:focus').waitFor();
  await page.keyboard.type(answer);
  await page.keyboard.press('Enter');
}

test.serial('captcha: typed with the keyboard alone, without scripts, after a wrong answer', async (t) => {
  const page = await visit(t, { javaScriptEnabled: false });
  await page.goto(edge.url('captcha', '/deep?x=1'));
  await typeAnswer(page, 'WRONG');
  await page.getByRole('alert').waitFor();
  t.is(await page.getByRole('alert').textContent(), 'That answer was not right. Please try once more.');
  await page.screenshot({ path: join(screenshots, 'captcha-wrong.png') });
  await page.route(VERIFY, (route) => {
    const form = new URLSearchParams(route.request().postData() ?? '');
    form.set('t', withAnswer(form.get('t')!, 'ABCDE'));
    return route.continue({ postData: form.toString() });
  });
  await typeAnswer(page, 'ab cde');
  await arrived(t, page);
  t.is(await page.getByRole('paragraph').textContent(), '/deep?x=1');
});

for (const level of ['js', 'pow'] as const) {
  test.serial(`${level} without scripts says what is needed`, async (t) => {
    const page = await visit(t, { javaScriptEnabled: false });
    await page.goto(edge.url(level));
    t.true(await page.locator('noscript p').isVisible());
  });
}

test.serial('cookie302 needs no script', async (t) => {
  const page = await visit(t, { javaScriptEnabled: false });
  await page.goto(edge.url('cookie302', '/no-script'));
  await arrived(t, page);
});

test.serial('who keeps no cookies is told so at every level, and not sent round', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'no-cookies-'));
  const context: BrowserContext = await startBrowserWithoutCookies(folder, HOSTS);
  t.teardown(async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const page = watched(await context.newPage());
  let navigations = 0;
  page.on('request', (request) => {
    if (request.isNavigationRequest()) navigations++;
  });
  const told = /cookies/;
  await page.goto(edge.url('cookie302', '/none'));
  t.is(await heading(page), 'Cookies are needed');
  t.is(navigations, 4);
  for (const level of ['js', 'pow'] as const) {
    navigations = 0;
    await page.goto(edge.url(level));
    await page.getByRole('alert').filter({ hasText: told }).waitFor();
    t.true(await page.getByRole('button', { name: 'Try again' }).isVisible());
    t.true(navigations <= 2, `${navigations} navigations`);
  }
  // A form has no script to ask whether cookies are kept: the node notices.
  await page.route(VERIFY, (route) => {
    const form = new URLSearchParams(route.request().postData() ?? '');
    form.set('t', withAnswer(form.get('t')!, 'ABCDE'));
    return route.continue({ postData: form.toString() });
  });
  await page.goto(edge.url('captcha'));
  await typeAnswer(page, 'ABCDE');
  await page.getByRole('alert').filter({ hasText: 'did not keep the cookie' }).waitFor();
});

test.serial('who passed and comes back without the pass starts the next check by hand', async (t) => {
  const page = await visit(t);
  await page.route(VERIFY, async (route) => {
    await beside(page, route.request().url(), route.request().postData()!);
    await route.fulfill({ status: 303, headers: { location: '/' } });
  });
  await page.goto(edge.url('js', '/lost'));
  await page.getByRole('alert').filter({ hasText: 'did not keep the cookie' }).waitFor();
  await page.screenshot({ path: join(screenshots, 'js-cookie-lost.png') });
  await page.unroute(VERIFY);
  await page.getByRole('button', { name: 'Try again' }).click();
  await arrived(t, page);
});

test.serial('a step that fails can be tried again', async (t) => {
  const page = await visit(t);
  await page.route(VERIFY, (route) => route.abort());
  await page.goto(edge.url('js', '/again'));
  const alert = page.getByRole('alert').filter({ hasText: 'could not be reached' });
  await alert.waitFor();
  await page.unroute(VERIFY);
  await page.route(VERIFY, (route) => route.fulfill({ status: 403, body: 'no' }));
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('alert').filter({ hasText: 'did not succeed' }).waitFor();
  await page.unroute(VERIFY);
  await page.getByRole('button', { name: 'Try again' }).click();
  await arrived(t, page);
});

test.serial('a check that keeps coming back stops by itself', async (t) => {
  const page = await visit(t);
  await page.route(VERIFY, (route) => route.fulfill({ status: 303, headers: { location: '/' } }));
  let navigations = 0;
  page.on('request', (request) => {
    if (request.isNavigationRequest()) navigations++;
  });
  await page.goto(edge.url('js', '/round'));
  await page.getByRole('alert').filter({ hasText: 'keeps coming back' }).waitFor();
  t.is(navigations, 4);
});

test.serial('pow works where no worker can be started', async (t) => {
  const page = await visit(t);
  await page.route(WORKER, (route) => route.abort());
  await page.goto(edge.url('pow', '/alone'));
  await arrived(t, page);
});

test.serial('workers search with WebAssembly under their own policy, and without it where they may not', async (t) => {
  const page = await visit(t);
  // The page's own workers are gone when the answer is on its way, which never arrives.
  const sent = page.waitForRequest(VERIFY);
  await page.route(VERIFY, () => undefined);
  await page.goto(edge.url('pow'));
  await sent;
  const started = page.waitForEvent('worker');
  await page.evaluate("new Worker(document.getElementById('o').dataset.w) && 1");
  const searching = "(() => { try { return typeof lanes('x', 1); } catch (e) { return e.message; } })()";
  t.is(await (await started).evaluate(searching), 'function');
  const body = await page.evaluate<string>("fetch(document.getElementById('o').dataset.w).then((r) => r.text())");
  await page.route(WORKER, (route) =>
    route.fulfill({
      body,
      contentType: 'application/javascript',
      headers: { 'content-security-policy': "default-src 'none'", 'cache-control': 'no-store' },
    }),
  );
  await page.unroute(VERIFY);
  await page.goto(edge.url('pow', '/without'));
  await arrived(t, page);
  t.true(problems.splice(0).every((problem) => /wasm|WebAssembly/i.test(problem)));
});

test.serial('progress of a long proof of work is told to everybody', async (t) => {
  const page = await visit(t, { reducedMotion: 'reduce' });
  // Workers that find nothing, so that no luck ends the page before it was looked at.
  const body = 'onmessage = () => setInterval(() => postMessage({ c: 1e6 }), 20);';
  await page.route(WORKER, (route) => route.fulfill({ body, contentType: 'application/javascript' }));
  await page.goto(edge.url('hard'));
  const bar = page.getByRole('progressbar', { name: 'Progress of the check' });
  await bar.waitFor();
  await eventually(async () => Number(await bar.getAttribute('aria-valuenow')) > 0);
  t.true(await page.getByText('about 12 seconds, longer on a phone').isVisible());
  t.is(await page.getByRole('status').textContent(), 'Working…');
  await page.screenshot({ path: join(screenshots, 'pow-progress.png') });
});

interface AxeResult {
  violations: { id: string; impact: string; nodes: { html: string }[] }[];
}

for (const locale of LOCALES) {
  for (const level of LEVELS) {
    test.serial(
      `${level} in ${locale}: no barrier that axe finds, nothing cut off at 375 pixels, light and dark`,
      async (t) => {
        for (const colorScheme of ['light', 'dark'] as const) {
          const page = await visit(t, { locale, colorScheme, viewport: PHONE });
          await hold(page);
          await showPage(page, level, `/${locale}-${colorScheme}?${'long-'.repeat(50)}`);
          t.is(await heading(page), TITLES[locale][level]);
          t.regex((await page.locator('footer').textContent()) ?? '', /^(Request ID|请求编号) [0-9a-f]{32}$/);
          const width = await page.evaluate('document.documentElement.scrollWidth');
          t.true((width as number) <= PHONE.width, `${width} pixels wide`);
          await page.evaluate(axeSource);
          const { violations } = (await page.evaluate('axe.run()')) as AxeResult;
          t.deepEqual(
            violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html).join(' ')}`),
            [],
          );
          await page.screenshot({ path: join(screenshots, `${level}-${locale}-${colorScheme}.png`), fullPage: true });
        }
      },
    );
  }
}
