// Every page of the console as it is drawn: in both languages, themes and at both widths nothing is cut off, scrolls
// sideways or is out of reach for those who cannot see it. TEST_PICTURES=1 leaves pictures in .cache/console-screenshots.
import test from 'ava';
import type { Browser, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { startBrowser } from '../helpers/browser.ts';
import { TEST_OPERATOR, type TestConsole } from '../helpers/console.ts';
import {
  accessibilityFaults,
  follow,
  KEEPS_PICTURES,
  layoutFaults,
  screenshot,
  settled,
  showTheme,
  signIn,
  startBrowsedConsole,
  type Theme,
  type Visit,
  visit,
} from '../helpers/console-pages.ts';
import { messages } from '../helpers/console-sources.ts';
import { startTestFleet } from '../helpers/fleet.ts';
import { orLong } from '../helpers/long-form.ts';

const LANGUAGES = ['en', 'zh-CN'] as const;
const THEMES = ['light', 'dark'] as const;
const WIDTHS = [1440, 375] as const;
const WHOLE = orLong(KEEPS_PICTURES, true);
const LONG = 'A customer with a name that goes on, <b>markup</b>, emoji 🎉 and العربية in it';

const KEYS = [...messages('en').keys()];

let browser: Browser;
let console: TestConsole & { origin: string };
let fleet: Fleet;
let paths: Map<string, string>;
let wafPath: string;

test.before(async () => {
  browser = await startBrowser();
  console = await startBrowsedConsole();
  const { client } = console;
  const clusters = await client.api<{ items: { id: string }[] }>('GET', '/clusters');
  const clusterId = clusters.items[0]!.id;
  fleet = await startTestFleet(console, clusterId, 3);
  const ids: string[] = [];
  for (let number = 0; number < 25; number++) {
    const name = number === 22 ? LONG : `Shop ${number}`;
    const domains = [
      `shop-${number}.example.com`,
      `*.shop-${number}.example.com`,
      `${'long-label-'.repeat(4)}${number}.example.com`,
    ];
    const { site } = await client.api<{ site: { id: string } }>('POST', '/sites', {
      name,
      domains,
      origins: [{ address: '93.184.216.34' }],
    });
    ids.push(site.id);
  }
  await client.api('PUT', `/sites/${ids[24]}/enabled`, { enabled: false });
  await client.api('PATCH', `/sites/${ids[22]}/waf`, {
    mode: 'detect',
    excludedRuleIds: [920_100],
    exclusions: [{ ruleId: 942_100, path: `/${'long-path-'.repeat(12)}`, part: 'argument', name: 'items.*.text' }],
  });
  wafPath = `/sites/${ids[22]}/waf`;
  for (const last of [7, 8, 9])
    await client.api('POST', '/bans', {
      scope: 'platform',
      cidr: `198.51.100.${last}`,
      reason: 'attack',
      durationSeconds: 3600,
    });
  const { id } = await client.api<{ id: string }>('POST', '/service-accounts', {
    name: 'billing',
    scopes: ['sites:read'],
  });
  await client.api('POST', `/service-accounts/${id}/keys`, {});
  paths = await findPages(ids[22]!);
});

test.after.always(async () => {
  await browser?.close();
  await fleet?.stop();
  await console?.stop();
});

async function signedIn(options: Parameters<typeof visit>[2] = {}): Promise<Visit> {
  const visitor = await visit(browser, console.origin, options);
  await signIn(visitor.context, console.origin, TEST_OPERATOR);
  return visitor;
}

/** Every page that the navigation and the tabs of a site lead to, by a name for its pictures. */
async function findPages(siteId: string): Promise<Map<string, string>> {
  const found = new Map([['account', '/account']]);
  const visitor = await signedIn();
  const { page } = visitor;
  const links = async (label: string): Promise<string[]> => {
    const all = await page.getByRole('navigation', { name: label, exact: true }).getByRole('link').all();
    return Promise.all(all.map(async (link) => (await link.getAttribute('href')) ?? ''));
  };
  await page.goto(`/sites/${siteId}/overview`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  for (const path of await links('Navigation')) found.set(path.slice(1).replaceAll('/', '-'), path);
  for (const path of await links('Parts of the site')) found.set(`site-${path.split('/').at(-1)}`, path);
  found.set('access-service-accounts', '/access/service-accounts');
  found.set('address', '/addresses/198.51.100.7');
  await visitor.close();
  return found;
}

interface Look {
  name: string;
  path: string;
  /** Opens what is to be looked at. */
  act?: (page: Page) => Promise<unknown>;
}

type Language = (typeof LANGUAGES)[number];

/** Draws pages at each width and in each theme, and answers what is wrong with them. */
async function look(
  open: (options: Parameters<typeof visit>[2]) => Promise<Visit>,
  language: Language,
  looks: readonly Look[],
): Promise<string[]> {
  const visitor = await open({ language, theme: 'system' });
  const faults: string[] = [];
  for (const [index, each] of looks.entries()) {
    // What was opened on the page before would be in the way.
    const stays = index > 0 && !looks[index - 1]!.act;
    // Each page begins in the theme that the page before ended in, because a change of themes redraws everything.
    const themes = language === 'en' && index % 2 === 1 ? THEMES.toReversed() : THEMES;
    faults.push(
      ...(await lookAt(visitor.page, each, { language, stays, themes, axeWidth: WIDTHS[(index >> 1) % 2]! })),
    );
  }
  faults.push(...visitor.faults());
  await visitor.close();
  return faults;
}

interface LookOptions {
  language: Language;
  /** Comes from another page of the Web UI, which loads nothing again. */
  stays: boolean;
  /** All is judged in the first of them, and colors in the other. */
  themes: readonly Theme[];
  /** Where axe judges all, but for the long form, in which it does at each width. */
  axeWidth: number;
}

async function lookAt(page: Page, { name, path, act }: Look, options: LookOptions): Promise<string[]> {
  const { language, stays, themes, axeWidth } = options;
  const faults: string[] = [];
  await page.setViewportSize({ width: WIDTHS[0], height: 900 });
  if (stays) await follow(page, path);
  else await page.goto(path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await settled(page);
  if (act) {
    await act(page);
    await settled(page);
  }
  // A window of 1440 at 200 %. In Chinese, whose words are shorter, the long form alone looks at it and at the wide window.
  if (language === 'en' || WHOLE) {
    await page.setViewportSize({ width: 720, height: 450 });
    faults.push(...(await layoutFaults(page)).map((fault) => `${name} ${language} at 200 %: ${fault}`));
  }
  // The page stays as it is: what was opened is open in each theme.
  for (const theme of themes) {
    // Words change nothing of what is looked at in the other theme.
    if (language !== 'en' && theme !== themes[0] && !KEEPS_PICTURES) continue;
    await showTheme(page, theme);
    for (const width of WIDTHS) {
      if (theme !== themes[0] && width !== WIDTHS[0] && !KEEPS_PICTURES) continue;
      if (language !== 'en' && width === WIDTHS[0] && !WHOLE) continue;
      await page.setViewportSize({ width, height: 900 });
      const wrong: string[] = [];
      // A theme changes colours only; the words change nothing of what axe judges.
      if (theme === themes[0]) wrong.push(...(await layoutFaults(page)), ...(await keysShown(page)));
      // Of the other theme axe judges colours, which are the same at each width.
      const judged = theme === themes[0] ? WHOLE || width === axeWidth : width === WIDTHS[0];
      if (language === 'en' && judged)
        wrong.push(...(await accessibilityFaults(page, theme === themes[0] ? 'all' : 'colors')));
      const variant = `${name} ${language} ${theme} ${width}`;
      faults.push(...wrong.map((fault) => `${variant}: ${fault}`));
      await screenshot(page, variant.replaceAll(' ', '-'));
    }
  }
  return faults;
}

async function keysShown(page: Page): Promise<string[]> {
  const text = (await page.locator('body').textContent()) ?? '';
  return KEYS.filter((key) => text.includes(key)).map((key) => `the key ${key} is shown in place of its words`);
}

const OPEN: readonly Required<Look>[] = [
  { name: 'dialog-new-site', path: '/sites?new=1', act: (page) => page.getByRole('dialog').waitFor() },
  {
    name: 'dialog-disable-site',
    path: '/sites',
    act: async (page) => {
      await page.locator('tbody a').first().click();
      await page.locator('.page-head .el-dropdown button').click();
      await page.getByRole('menuitem').first().click();
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'dialog-new-key',
    path: '/access/keys',
    act: async (page) => {
      await page.locator('.page-head button').click();
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'menu-user',
    path: '/account',
    act: async (page) => {
      await page.locator('.user').click();
      await page.getByRole('menuitem').first().waitFor();
    },
  },
  {
    name: 'palette',
    path: '/account',
    act: async (page) => {
      await page.keyboard.press('Control+k');
      await page.locator('[role=combobox]:focus').waitFor();
      await page.keyboard.type('shop-1');
      await page.getByRole('option').first().waitFor();
    },
  },
  {
    name: 'dialog-waf-rules',
    path: '/sites',
    act: async (page) => {
      await page.goto(wafPath);
      await page.locator('.waf-find').click();
      await page.getByRole('dialog').waitFor();
    },
  },
  {
    name: 'dialog-waf-exclude',
    path: '/sites',
    act: async (page) => {
      await page.goto(wafPath);
      await page.locator('.waf-find').click();
      await page.locator('.waf-rules button').first().click();
      await page.getByRole('dialog').locator('form').waitFor();
    },
  },
  {
    name: 'form-with-problem',
    path: '/sites',
    act: async (page) => {
      await page.locator('tbody tr').nth(2).getByRole('link').first().click();
      await page.locator('.parts__column a[href$="/origins"]').click();
      await page.locator('.field__number input').first().fill('900000');
      await page.locator('.api-call > button').click();
    },
  },
];

const showCommand = async (page: Page) => {
  await page.locator('button[type=submit]').click();
  await page.locator('.copy__text').waitFor();
};
const FIRST_STEPS: readonly Look[] = [
  { name: 'setup-channel', path: '/setup?step=channel' },
  { name: 'setup-node', path: '/setup?step=node', act: showCommand },
  { name: 'setup-site', path: '/setup?step=site' },
];

// On a busy machine a test with this many pages says nothing for longer than a hang is given.
const SLOW_MS = 1_800_000;

for (const language of LANGUAGES) {
  test.serial(`every page fits and can be used by everybody, in both themes: ${language}`, async (t) => {
    t.timeout(SLOW_MS);
    t.true(paths.size >= 6, [...paths.keys()].join());
    t.deepEqual(
      await look(
        signedIn,
        language,
        [...paths].map(([name, path]) => ({ name, path })),
      ),
      [],
    );
  });

  test.serial(`sign-in and first run fit and can be used by everybody, in both themes: ${language}`, async (t) => {
    t.timeout(SLOW_MS);
    const stranger = (origin: string) => (options: Parameters<typeof visit>[2]) => visit(browser, origin, options);
    const fresh = await startBrowsedConsole({ setUp: false });
    t.teardown(() => fresh.stop());
    t.deepEqual(await look(stranger(console.origin), language, [{ name: 'sign-in', path: '/login' }]), []);
    t.deepEqual(await look(stranger(fresh.origin), language, [{ name: 'setup', path: '/setup' }]), []);
    t.deepEqual(await look(signedIn, language, FIRST_STEPS), []);
  });

  test.serial(`dialogs, menus and the palette fit and can be used by everybody while open: ${language}`, async (t) => {
    t.timeout(SLOW_MS);
    t.deepEqual(await look(signedIn, language, OPEN), []);
  });
}
