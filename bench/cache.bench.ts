// Hits and misses of the cache beside nginx with proxy_cache and Varnish: processor time of the server for each request. Each
// has core 0 for itself while it is measured; origin (nginx) and clients have core 1.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { threeOf } from './lib/beside.ts';
import { type Cache, HOSTS, startCaches } from './lib/caches.ts';
import { familyCpuSeconds } from './lib/machine.ts';
import type { Server } from './lib/servers.ts';
import { medianInterval, round2 } from './lib/stats.ts';
import { TlsLoad } from './lib/tls-load.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title = 'hits and misses beside nginx proxy_cache and Varnish, one core each';
export const needs = ['nginx', 'openssl', 'varnishd', 'wrk'];

const CPU = '0';
const LOAD_CPU = '1';
const CONNECTIONS = 32;
const LARGE_CONNECTIONS = 4;
const UNEXPECTED_SHARE = 0.001;
const MISS_MICROS = 60;
const UNSTORED_MICROS = 2;

/** What is asked: a path of a site, each time another query with `misses`; which caches are asked. */
interface Work {
  host: string;
  path: string;
  misses?: boolean;
  tls?: boolean;
  edgeAlone?: boolean;
}

const WORK: Record<string, Work> = {
  hit1k: { host: HOSTS.caching, path: '/1k' },
  hit100k: { host: HOSTS.caching, path: '/100k' },
  hit10mTls: { host: HOSTS.large, path: '/', tls: true },
  storedMiss: { host: HOSTS.caching, path: '/1k', misses: true },
  plain: { host: HOSTS.plain, path: '/1k', misses: true, edgeAlone: true },
  unstored: { host: HOSTS.caching, path: '/unstored', edgeAlone: true },
  bypass: { host: HOSTS.bypassing, path: '/1k', misses: true, edgeAlone: true },
};

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  const rounds = quick ? 2 : 12;
  const seconds = quick ? 1 : 3;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-cache-'));
  const started: Server[] = [];
  try {
    const load = new TlsLoad(LOAD_CPU);
    const caches = await startCaches(folder, { cpu: CPU, loadCpu: LOAD_CPU, load, started });
    const micros = new Map<string, number[]>();
    for (let round = -1; round < rounds; round++) {
      for (const [what, work] of Object.entries(WORK)) {
        const asked = [...caches].filter(([name, cache]) =>
          work.tls ? cache.tlsPort > 0 : !work.edgeAlone || name === 'edge',
        );
        // Another one first in each round.
        for (const [name, cache] of round % 2 === 0 ? asked : asked.toReversed()) {
          const spent = await microsOf(folder, load, cache, work, round < 0 ? 1 : seconds);
          // Round -1 fills the caches.
          if (round < 0) continue;
          const key = `${what} ${name}`;
          micros.set(key, [...(micros.get(key) ?? []), spent]);
          log(`round ${round + 1} ${key}: ${round2(spent)} µs`);
        }
      }
    }
    return result(micros);
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

let runs = 0;

/** Processor time of a cache for a request, in microseconds. */
async function microsOf(folder: string, load: TlsLoad, cache: Cache, work: Work, seconds: number): Promise<number> {
  const { server, tlsPort } = cache;
  const before = familyCpuSeconds(server.pid);
  const done = work.tls
    ? await load.requests({ port: tlsPort, host: work.host, connections: LARGE_CONNECTIONS, streams: 1, seconds })
    : await wrk(folder, {
        url: `http://127.0.0.1:${server.port}${work.path}`,
        seconds,
        connections: CONNECTIONS,
        cpus: LOAD_CPU,
        headers: { Host: work.host },
        ...(work.misses ? { script: differentQueries(work.path, ++runs) } : {}),
      });
  if (done.unexpected > done.requests * UNEXPECTED_SHARE)
    throw new Error(`${server.name}: ${done.unexpected} of ${done.requests} responses were not expected`);
  return ((familyCpuSeconds(server.pid) - before) / done.requests) * 1e6;
}

const differentQueries = (target: string, number: number) =>
  `local n = 0\nrequest = function() n = n + 1 return wrk.format("GET", "${target}?${number}-" .. n) end\n`;

function result(micros: Map<string, number[]>): BenchResult {
  const figures: Record<string, unknown> = {};
  for (const [key, sample] of micros) {
    const { median, low, high } = medianInterval(sample);
    figures[key] = { cpuMicros: round2(median), interval: [round2(low), round2(high)] };
  }
  // How many times as much the edge gets out of the same processor time, round by round.
  const times = (what: string, other: string) =>
    medianInterval(micros.get(`${what} edge`)!.map((own, round) => micros.get(`${what} ${other}`)![round]! / own));
  figures.edgeTo = Object.fromEntries(
    [...micros.keys()]
      .map((key) => key.split(' ') as [string, string])
      .filter(([, name]) => name !== 'edge')
      .map(([what, name]) => [`${what} ${name}`, threeOf(times(what, name))]),
  );
  const more = (what: string) =>
    medianInterval(micros.get(`${what} edge`)!.map((own, round) => own - micros.get('plain edge')![round]!)).median;
  figures.moreThanPlain = Object.fromEntries(
    ['storedMiss', 'unstored', 'bypass'].map((what) => [what, round2(more(what))]),
  );
  return {
    figures,
    aims: [
      { aim: 'hits of 1 KiB ≥ 0.4 × nginx, processor time (median)', reached: times('hit1k', 'nginx').median >= 0.4 },
      { aim: 'hits of 100 KiB ≥ 0.7 × nginx', reached: times('hit100k', 'nginx').median >= 0.7 },
      { aim: 'hits of 10 MiB over TLS ≥ 0.8 × nginx', reached: times('hit10mTls', 'nginx').median >= 0.8 },
      { aim: `a miss that is stored: at most ${MISS_MICROS} µs more`, reached: more('storedMiss') <= MISS_MICROS },
      { aim: `one that is not: at most ${UNSTORED_MICROS} µs more`, reached: more('unstored') <= UNSTORED_MICROS },
      {
        aim: `a request that bypasses: at most ${UNSTORED_MICROS} µs more`,
        reached: more('bypass') <= UNSTORED_MICROS,
      },
    ],
    programs: { nginx: ['nginx', '-v'], varnish: ['varnishd', '-V'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
  };
}
