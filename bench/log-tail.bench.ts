// From the end of a request at a real edge to its row at a client of the stream, for a site that logs nothing: with a request
// now and then, and with 150 a second. Beside it the same row by search, asked for every 100 ms, once the site logs all.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TailLine } from '../contract/resources/log-tail.ts';
import { type Stack, startStack } from './lib/stack.ts';
import { median, percentile, round2, seeded } from './lib/stats.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'from the end of a request to its row in the tail';

const AIM_MS = 1000;
const WAIT_MS = 30_000;
const LOOK_MS = 100;
const BUSY_PER_SECOND = 150;

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 30 : 300;
  const stack = await startStack('log-tail');
  const tail = new Tail();
  try {
    await tail.open(stack);
    // The first row says that the node knows.
    for (let number = 0; !tail.times.has('/tail-begun'); number++) {
      if (number * LOOK_MS > WAIT_MS) throw new Error('no row came');
      await get(stack, '/tail-begun');
      await sleep(LOOK_MS);
    }
    const quiet = await measure(stack, tail, 'quiet', rounds);
    log(`quiet: ${JSON.stringify(figuresOf(quiet))}`);
    const load = new Load(stack);
    const busy = await measure(stack, tail, 'busy', rounds);
    await load.stop();
    log(`busy: ${JSON.stringify(figuresOf(busy))}`);
    const bySearch = await search(stack, quick ? 5 : 30);
    const { dropped } = tail;
    return {
      figures: { rounds, quiet: figuresOf(quiet), busy: figuresOf(busy), bySearch: figuresOf(bySearch), dropped },
      aims: [
        { aim: `quiet: p99 ≤ ${AIM_MS} ms`, reached: percentile(quiet, 99) <= AIM_MS },
        { aim: `${BUSY_PER_SECOND} requests/s: p99 ≤ ${AIM_MS} ms`, reached: percentile(busy, 99) <= AIM_MS },
      ],
    };
  } finally {
    tail.close();
    await stack.stop();
  }
}

const figuresOf = (sample: readonly number[]) => ({
  p50Ms: round2(median(sample)),
  p99Ms: round2(percentile(sample, 99)),
  maxMs: round2(percentile(sample, 100)),
});

/** Milliseconds from the end of each request to its row; a row that was dropped, which the tail says, is none. */
async function measure(stack: Stack, tail: Tail, name: string, rounds: number): Promise<number[]> {
  const random = seeded(7);
  const ended = new Map<string, number>();
  for (let round = 0; round < rounds; round++) {
    const path = `/tail-${name}-${round}`;
    await get(stack, path);
    ended.set(path, Date.now());
    await sleep(40 + random() * 120);
  }
  const until = Date.now() + WAIT_MS;
  const missing = () => [...ended.keys()].filter((path) => !tail.times.has(path)).length;
  while (missing() > tail.dropped && Date.now() < until) await sleep(LOOK_MS);
  if (missing() > tail.dropped) throw new Error(`${missing()} rows did not come`);
  return [...ended].flatMap(([path, at]) => (tail.times.has(path) ? [Math.max(0, tail.times.get(path)! - at)] : []));
}

async function search({ facts, client }: Stack, rounds: number): Promise<number[]> {
  const { id } = facts.site;
  await client.api('PUT', `/sites/${id}/logs/settings`, { sampleRate: 10_000 });
  const times: number[] = [];
  for (let round = -1; round < rounds; round++) {
    for (let asked = 0; ; asked++) {
      const path = `/search-${round}-${asked}`;
      await get({ facts }, path);
      const ended = Date.now();
      // Before the settings are in force, a request has no row.
      const found = await foundBySearch({ client }, id, path, round < 0 ? 2_000 : WAIT_MS);
      if (found && round >= 0) times.push(Date.now() - ended);
      if (found) break;
      if (round >= 0 || asked > 20) throw new Error('no row was found');
    }
  }
  return times;
}

async function foundBySearch(
  { client }: Pick<Stack, 'client'>,
  id: string,
  path: string,
  waitMs: number,
): Promise<boolean> {
  const from = new Date(Date.now() - 60_000).toISOString();
  for (const until = Date.now() + waitMs; Date.now() < until; ) {
    const to = new Date(Date.now() + 60_000).toISOString();
    const page = await client.rpc<{ entries: unknown[] }>('logs.query', { id, from, to, path });
    if (page.entries.length > 0) return true;
    await sleep(LOOK_MS);
  }
  return false;
}

const agent = new http.Agent({ keepAlive: true });

function get({ facts }: Pick<Stack, 'facts'>, path: string): Promise<void> {
  const url = new URL(path, `http://${facts.edge.http}`);
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent, headers: { host: facts.site.host } }, (response) => {
      response.resume().on('end', resolve).on('error', reject);
    });
    request.on('error', reject);
  });
}

/** Requests at even times. */
class Load {
  readonly #timer: NodeJS.Timeout;
  readonly #open = new Set<Promise<void>>();

  constructor(stack: Stack) {
    let sent = 0;
    const begun = performance.now();
    this.#timer = setInterval(() => {
      for (const due = ((performance.now() - begun) * BUSY_PER_SECOND) / 1000; sent < due; sent++) {
        const request = get(stack, '/load')
          .catch(() => undefined)
          .finally(() => this.#open.delete(request));
        this.#open.add(request);
      }
    }, 10);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await Promise.all(this.#open);
  }
}

class Tail {
  /** When the row of a path came first, Unix milliseconds. */
  readonly times = new Map<string, number>();
  dropped = 0;
  readonly #abort = new AbortController();

  async open({ facts, client }: Stack): Promise<void> {
    const response = await fetch(`${facts.consoleUrl}/rpc/logs/tail`, {
      method: 'POST',
      headers: { cookie: client.cookie, 'content-type': 'application/json', 'x-csrf-token': 'orpc' },
      body: JSON.stringify({ id: facts.site.id }),
      signal: this.#abort.signal,
    });
    if (!response.ok) throw new Error(`logs.tail: ${response.status} ${await response.text()}`);
    void this.#read(response.body!).catch(() => undefined);
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      const now = Date.now();
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop()!;
      for (const line of lines.map((text) => JSON.parse(text) as TailLine)) {
        if (line.type !== 'rows') continue;
        this.dropped += line.dropped;
        for (const { path } of line.entries) if (!this.times.has(path)) this.times.set(path, now);
      }
    }
  }
}
