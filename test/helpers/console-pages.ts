// A real browser over a real console. Whatever a page must never do (break the policy, throw, ask a foreign address) is
// collected and fails the test that closes it.
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, BrowserContext, BrowserContextOptions, Page, Request } from 'playwright-core';
import { freePort } from '../../bench/lib/servers.ts';
import { cacheDir } from '../../bin/lib/root.ts';
import { buildWebConsole } from '../../bin/lib/web-console.ts';
import { startTestConsole, TEST_OPERATOR, type TestConsole, type TestConsoleOptions } from './console.ts';
import { eventually } from './eventually.ts';

export { buildWebConsole };

export const SCREENSHOTS = join(cacheDir, 'console-screenshots');

// Scripts as text: they run in the browser, whose types are not those of this process.
const START_SCRIPT = `
  if (location.origin !== 'null') localStorage.setItem('svc.theme', '$THEME');
  if (location.origin !== 'null' && !localStorage.getItem('svc.language')) localStorage.setItem('svc.language', '$LANGUAGE');
  document.addEventListener('securitypolicyviolation', (event) => {
    reportFault('policy: ' + [event.violatedDirective, event.blockedURI, event.sample, event.sourceFile].join(' '));
  });`;
const LAYOUT_SCRIPT = `(() => {
  const faults = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) faults.push('the page is ' + (scrollWidth - clientWidth) + ' px too wide');
  for (const element of document.querySelectorAll('h1, h2, button, a, label, td, th, dt, dd, p')) {
    const style = getComputedStyle(element);
    const hides = style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis' && element.clientWidth > 1;
    if (hides && element.scrollWidth > element.clientWidth + 1) faults.push('cut off: ' + element.outerHTML.slice(0, 200));
  }
  const inline = (element) => {
    const style = getComputedStyle(element);
    const bare = ['paddingLeft', 'paddingRight', 'borderLeftWidth', 'borderRightWidth'].every((side) => style[side] === '0px');
    return style.display === 'inline' && style.position === 'static' && bare;
  };
  for (const element of document.querySelectorAll('a, b, strong, span, code, bdi, button.time-text')) {
    let next = element.nextSibling;
    while (next?.nodeType === Node.COMMENT_NODE) next = next.nextSibling;
    if (next?.nodeType !== Node.ELEMENT_NODE || element.closest('[aria-hidden=true], pre, .expression-input')) continue;
    if (!/[\\p{L}\\p{N}]$/u.test(element.textContent) || !/^[\\p{L}\\p{N}]/u.test(next.textContent)) continue;
    const [left, right] = [[...element.getClientRects()].at(-1), next.getClientRects()[0]];
    if (!left || !right || !inline(element) || !inline(next) || Math.abs(left.bottom - right.bottom) > 4) continue;
    if (Math.abs(right.left - left.right) < 2) faults.push('run together: ' + element.outerHTML.slice(0, 150) + next.outerHTML.slice(0, 150));
  }
  return faults;
})()`;

/** Bounds a hang, on the slowest machine; it measures nothing. */
const PATIENCE_MS = 90_000;

export type Theme = 'light' | 'dark';

export interface Visit {
  context: BrowserContext;
  page: Page;
  /** What went wrong in any page of the context so far. */
  faults(): string[];
  close(): Promise<void>;
}

export interface VisitOptions extends BrowserContextOptions {
  /** system: that of the browser, which `showTheme` changes. */
  theme?: Theme | 'system';
  language?: 'en' | 'zh-CN';
  width?: number;
}

/** A console whose public address is the one a browser opens, with its pages built. */
export async function startBrowsedConsole(options: TestConsoleOptions = {}): Promise<TestConsole & { origin: string }> {
  await buildWebConsole();
  const port = await freePort();
  const origin = `http://localhost:${port}`;
  const console = await startTestConsole({
    ...options,
    env: { PORT: String(port), SVC_PUBLIC_URL: origin, ...options.env },
  });
  return { ...console, origin };
}

/** Opens a context of its own: other cookies, other storage. */
export async function visit(browser: Browser, origin: string, options: VisitOptions = {}): Promise<Visit> {
  const { theme = 'light', language = 'en', width = 1440, ...more } = options;
  const context = await browser.newContext({
    baseURL: origin,
    viewport: { width, height: 900 },
    reducedMotion: 'reduce',
    ...more,
  });
  context.setDefaultTimeout(PATIENCE_MS);
  noteTraffic(context);
  const found: string[] = [];
  await context.exposeBinding('reportFault', (_source, text: string) => void found.push(text));
  await context.addInitScript(START_SCRIPT.replace('$THEME', theme).replace('$LANGUAGE', language));
  context.on('weberror', (error) => found.push(`thrown: ${error.error().stack}`));
  context.on('request', (request) => {
    const url = new URL(request.url());
    if (url.origin !== origin && url.protocol.startsWith('http')) found.push(`foreign address: ${request.url()}`);
  });
  const page = await context.newPage();
  return { context, page, faults: () => found, close: () => context.close() };
}

/** Signs in without the pages, for stories that are about something else. */
export async function signIn(
  context: BrowserContext,
  origin: string,
  operator: { email: string; password: string },
): Promise<void> {
  const { email, password } = operator;
  const answer = await context.request.post('/api/auth/sign-in/email', {
    data: { email, password },
    headers: { origin },
  });
  if (!answer.ok()) throw new Error(`sign-in: ${answer.status()} ${await answer.text()}`);
}

const ANSWER_SCRIPT = `{
  const asked = new WeakSet();
  new MutationObserver(async () => {
    const dialog = document.querySelector('dialog.ask');
    if (!dialog || asked.has(dialog)) return;
    asked.add(dialog);
    const yes = await answerQuestion(dialog.querySelector('h2').textContent);
    dialog.querySelector(yes ? '.ask__yes' : '.ask__no').click();
  }).observe(document, { childList: true, subtree: true });
}`;

/** Answers what the pages ask before they throw something away; `agree` gets the title of the question. */
export async function answerQuestions(page: Page, agree: (title: string) => boolean): Promise<void> {
  await page.exposeFunction('answerQuestion', agree);
  await page.addInitScript(ANSWER_SCRIPT);
  await page.evaluate(ANSWER_SCRIPT);
}

/** A visit of the operator, signed in and on the page. */
export async function signedInVisit(
  browser: Browser,
  origin: string,
  path: string,
  options: VisitOptions = {},
): Promise<Visit> {
  const visitor = await visit(browser, origin, options);
  await signIn(visitor.context, origin, TEST_OPERATOR);
  await visitor.page.goto(path);
  return visitor;
}

// vue-router calls a page that is shown already a failure of type 16.
const GO_SCRIPT = `(async () => {
  const { $router } = document.querySelector('#app').__vue_app__.config.globalProperties;
  await $router.isReady();
  const failure = await $router.push($PATH);
  if (failure && failure.type !== 16) throw new Error('failure ' + failure.type + ' on the way to ' + $PATH);
})()`;

/**
 * Goes to another page of the Web UI as a link does, for a quarter of the processor time of a load. What the page before
 * held in the browser's memory stays, so stories about that call `page.goto`.
 */
export async function follow(page: Page, path: string): Promise<void> {
  // The Web UI begins once its words are there, which may be after the load.
  await page.locator('h1').first().waitFor();
  await page.evaluate(GO_SCRIPT.replaceAll('$PATH', () => JSON.stringify(path)));
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// Only what is wrong leaves the page: what is right with it is a hundred times as much text.
const AXE_SCRIPT = `axe.run({ $RULES resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
  nodes.map((node) => [id + ': ' + help, node.html, node.failureSummary].join('\\n  '))))`;

/** Changes the theme of a page that follows the browser's, as it stands, and waits until its colours are the new ones. */
export async function showTheme(page: Page, theme: Theme): Promise<void> {
  await page.emulateMedia({ colorScheme: theme });
  const still = `document.documentElement.classList.contains('dark') === ${theme === 'dark'} &&
    document.getAnimations().every((each) => each.effect?.getTiming().iterations === Infinity)`;
  await eventually(() => page.evaluate<boolean>(still), { what: `the theme ${theme}` });
}

/** Waits until a page that was given another size is drawn in it: its script may learn of it after the test. */
async function drawn(page: Page): Promise<void> {
  const { width } = page.viewportSize()!;
  // Its own width comes before that which its styles go by.
  const wide = `innerWidth === ${width} && matchMedia('(width: ${width}px)').matches`;
  const frames = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))';
  await eventually(() => page.evaluate<boolean>(`${wide} && ${frames}.then(() => ${wide})`), {
    what: `a page ${width} wide`,
  });
}

/** Those that axe has enabled; its category of colors has rules beyond the level that is aimed at, too. */
const COLOR_RULES = `runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] },`;

/** What axe has against the page as it is now. `rules`: all of them, or those of colors for a page that was judged before. */
export async function accessibilityFaults(page: Page, rules: 'all' | 'colors' = 'all'): Promise<string[]> {
  await drawn(page);
  if (!(await page.evaluate<boolean>(`'axe' in window`))) await page.evaluate(axeSource);
  return page.evaluate<string[]>(AXE_SCRIPT.replace('$RULES', rules === 'all' ? '' : COLOR_RULES));
}

/** What does not fit: the page scrolls sideways, a text is cut off without saying so, or two run together. */
export async function layoutFaults(page: Page): Promise<string[]> {
  await drawn(page);
  return page.evaluate<string[]>(LAYOUT_SCRIPT);
}

/** With TEST_PICTURES=1 tests leave pictures of what they look at, which takes longer than looking. */
export const KEEPS_PICTURES = process.env.TEST_PICTURES === '1';

/** Writes .cache/console-screenshots/<name>.png where pictures are kept. */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (!KEEPS_PICTURES) return;
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });
}

/** Requests under way, and when the last one began or ended. */
const traffic = new WeakMap<BrowserContext, { open: Set<Request>; changedAt: number }>();
const QUIET_MS = 500;

/** The script of the worker that all tabs share never counts as loaded: it is no page's. */
const isWorker = (request: Request) => /\/assets\/worker-[^/]+$/.test(request.url());

/** Pages that were closed say nothing of the end of their requests. */
function isOf(page: Page, request: Request): boolean {
  try {
    return request.frame().page() === page;
  } catch {
    return false;
  }
}

function noteTraffic(context: BrowserContext): void {
  const state = { open: new Set<Request>(), changedAt: performance.now() };
  traffic.set(context, state);
  const note = (change: (request: Request) => void) => (request: Request) => {
    if (isWorker(request)) return;
    change(request);
    state.changedAt = performance.now();
  };
  context.on(
    'request',
    note((request) => void state.open.add(request)),
  );
  context.on(
    'requestfinished',
    note((request) => void state.open.delete(request)),
  );
  context.on(
    'requestfailed',
    note((request) => void state.open.delete(request)),
  );
}

/** Waits until nothing is fetched and every shown part has its data. */
export async function settled(page: Page): Promise<void> {
  await page.waitForLoadState('load');
  const state = traffic.get(page.context());
  if (!state) throw new Error('settled() is for pages of visit()');
  await eventually(() => {
    const own = [...state.open].filter((request) => isOf(page, request));
    return own.length === 0 && performance.now() - state.changedAt > QUIET_MS;
  });
  // A function that is asked again would be text to evaluate, which the policy forbids.
  await page.locator('[aria-busy="true"], .el-loading-mask').first().waitFor({ state: 'detached' });
}

/** Waits until a script of the page answers true. Not waitForFunction: the page's policy forbids what that asks again with. */
export async function until(page: Page, script: string): Promise<void> {
  await eventually(() => page.evaluate<boolean>(script), { what: script });
}
