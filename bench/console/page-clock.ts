// What runs in the page before its own scripts: it notes when the first row was painted and which tasks were long.
// Scripts as text: they run in the browser, whose types are not those of this process.

/** What counts as the first row of a page, by its path. */
const FIRST_ROWS: readonly [path: string, selector: string][] = [
  ['^/login$', 'form input[type=password], form input[type=email]'],
  ['^/sites/[^/]+/', '.svc-facts dd'],
  ['.*', 'tbody tr td'],
];

export const PAGE_CLOCK = `(() => {
  if (location.origin === 'null') return;
  const long = [];
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) long.push({ startTime, end: startTime + duration });
  }).observe({ type: 'longtask', buffered: true });
  performance.setResourceTimingBufferSize(5000);
  const [, selector] = ${JSON.stringify(FIRST_ROWS)}.find(([path]) => new RegExp(path).test(location.pathname));

  /** Time of the first frame in which the condition holds. */
  const painted = (condition) => new Promise((resolve) => {
    const look = () => {
      if (!condition()) return false;
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      return true;
    };
    if (look()) return;
    const observer = new MutationObserver(() => look() && observer.disconnect());
    observer.observe(document, { childList: true, subtree: true, characterData: true, attributes: true });
  });

  const first = painted(() => document.querySelector(selector) !== null);
  /** First row and 500 ms without a long task: the time at which that quiet began. */
  const usable = async () => {
    const row = await first;
    for (;;) {
      const quietSince = Math.max(row, ...long.map(({ end }) => end));
      if (performance.now() >= quietSince + 500) return { row, tti: quietSince, longMs: long.map(({ startTime, end }) => Math.round(end - startTime)) };
      await new Promise((next) => setTimeout(next, 50));
    }
  };
  /** Waits for an event; \`taken\` is the time from it to the first frame in which the condition holds, ms. */
  const from = (type, condition) => {
    const { promise, resolve } = Promise.withResolvers();
    pageClock.taken = promise;
    addEventListener(type, (event) => {
      void painted(condition).then((at) => resolve(at - event.timeStamp));
    }, { capture: true, once: true });
  };
  window.pageClock = { usable, from, taken: null };
})()`;

/** Durations of the page's calls so far, by the browser's own clock, ms. */
export const API_TIMES = `performance.getEntriesByType('resource')
  .filter(({ name, responseEnd }) => name.includes('/rpc/') && !name.includes('/rpc/live/') && responseEnd > 0)
  .map(({ name, startTime, responseEnd }) => ({ name: new URL(name).pathname, ms: responseEnd - startTime }))`;

/** How many answers the page had before its first row. */
export const requestsBefore = (ms: number): string =>
  `performance.getEntriesByType('resource').filter(({ responseEnd }) => responseEnd > 0 && responseEnd <= ${ms}).length`;
