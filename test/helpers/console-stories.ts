// What a story of the Web UI begins with: a console with nodes that apply at once, and a browser over it.
import type { Browser, Page } from 'playwright-core';
import type { Fleet } from '../../bench/fleet/fleet.ts';
import { startBrowser } from './browser.ts';
import type { TestConsole } from './console.ts';
import { signedInVisit, startBrowsedConsole, type Visit, type VisitOptions, visit } from './console-pages.ts';
import { startTestFleet } from './fleet.ts';

export interface SiteAnswer {
  id: string;
  name: string;
  domains: string[];
  originSettings: { tries: number; maxFails: number };
  contentSettings: { requestBodyLimit: number };
}

export class ConsoleStories {
  browser!: Browser;
  console!: TestConsole & { origin: string };
  fleet!: Fleet;
  readonly #nodes: number;
  #sites = 0;

  /** `nodes`: how many follow the console's first cluster. */
  constructor(nodes: number) {
    this.#nodes = nodes;
  }

  /** Call `stop` whether it throws or not. */
  async start(): Promise<void> {
    this.browser = await startBrowser();
    this.console = await startBrowsedConsole();
    const { items } = await this.console.client.api<{ items: { id: string }[] }>('GET', '/clusters');
    this.fleet = await startTestFleet(this.console, items[0]!.id, this.#nodes);
  }

  async stop(): Promise<void> {
    await this.browser?.close();
    await this.fleet?.stop();
    await this.console?.stop();
  }

  /** A visit of nobody yet. */
  visit(): Promise<Visit> {
    return visit(this.browser, this.console.origin);
  }

  /** A signed-in visit that must end without faults. */
  operatorVisit(path: string, options: VisitOptions = {}): Promise<Visit> {
    return signedInVisit(this.browser, this.console.origin, path, options);
  }

  async newSite(): Promise<SiteAnswer> {
    const number = ++this.#sites;
    const { site } = await this.console.client.api<{ site: SiteAnswer }>('POST', '/sites', {
      name: `Story ${number}`,
      domains: [`story-${number}.example.com`],
      origins: [{ address: '93.184.216.34' }],
    });
    return site;
  }

  readSite(id: string): Promise<SiteAnswer> {
    return this.console.client.api<SiteAnswer>('GET', `/sites/${id}`);
  }
}

/** Chooses what is done seldom to the object of the page. */
export async function chooseRare(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'More', exact: true }).click();
  await page.getByRole('menuitem', { name, exact: true }).click();
}

/** Waits until the object's page offers it, and leaves the menu closed. */
export async function offersRare(page: Page, name: string): Promise<void> {
  await page.getByRole('button', { name: 'More', exact: true }).click();
  await page.getByRole('menuitem', { name, exact: true }).waitFor();
  await page.keyboard.press('Escape');
}

export const saveButton = (page: Page) => page.getByRole('button', { name: 'Save', exact: true });
/** The badge of the change tracker; its words are also said to screen readers. */
export const tracker = (page: Page) =>
  page.getByRole('complementary', { name: 'Latest changes' }).locator('.svc-badge');
