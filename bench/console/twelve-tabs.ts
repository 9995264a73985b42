// How fast the API answers one tab, alone and with eleven others open, in turn: all of them share one stream, so the
// browser's few connections stay free.
import type { BrowserContext, Page } from 'playwright-core';
import { percentile, round2 } from '../lib/stats.ts';

export const TABS = 12;
const CALLS_PER_ROUND = 60;

export interface TabTimes {
  /** Milliseconds of each call. */
  one: number[];
  all: number[];
}

/** Milliseconds until each of the page's answers, asked for one after the other. */
const ANSWER_TIMES = `(async () => {
  const times = [];
  for (let index = 0; index < ${CALLS_PER_ROUND}; index++) {
    const began = performance.now();
    const answer = await fetch('/rpc/account/me', {
      method: 'POST', headers: { 'content-type': 'application/json', 'x-csrf-token': 'orpc' }, body: '{}',
    });
    if (!answer.ok) throw new Error('answered with ' + answer.status);
    await answer.json();
    times.push(performance.now() - began);
  }
  return times;
})()`;

/** `open` opens a page and answers when it can be used. */
export async function measureTabs(
  context: BrowserContext,
  open: (page: Page) => Promise<unknown>,
  rounds: number,
): Promise<TabTimes> {
  const times: TabTimes = { one: [], all: [] };
  const first = await context.newPage();
  await open(first);
  // Not counted: the first answers of a page wait for what it loads.
  await first.evaluate(ANSWER_TIMES);
  for (let round = 0; round < rounds; round++) {
    times.one.push(...(await first.evaluate<number[]>(ANSWER_TIMES)));
    const others: Page[] = [];
    while (others.length < TABS - 1) {
      const page = await context.newPage();
      await open(page);
      others.push(page);
    }
    await first.bringToFront();
    times.all.push(...(await first.evaluate<number[]>(ANSWER_TIMES)));
    for (const page of others) await page.close();
  }
  return times;
}

/** The 95th percentiles, and by how much the second is larger. */
export function tabFigures({ one, all }: TabTimes): { oneP95Ms: number; allP95Ms: number; ratio: number } {
  const [oneP95, allP95] = [percentile(one, 95), percentile(all, 95)];
  return { oneP95Ms: round2(oneP95), allP95Ms: round2(allP95), ratio: round2(allP95 / oneP95) };
}
