// Plain proxying: our edge with 1 and with 10,000 sites beside the one before its way of a request was rebuilt, beside the
// same Caddy's reverse_proxy and beside nginx. Each proxy has core 0 for itself while it is measured; origin (nginx) and
// wrk have core 1.
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { beside, besideFigures, judge, threeOf } from './lib/beside.ts';
import { edgeCommand, presentEdge } from './lib/edge.ts';
import { siteHost, writeEdgeState } from './lib/edge-state.ts';
import { cpuSeconds } from './lib/machine.ts';
import { OLD_COMMIT, oldEdge } from './lib/old-edge.ts';
import { startPlainCaddy } from './lib/plain-caddy.ts';
import { answers, freePort, nginxCommand, type Server, startServer } from './lib/servers.ts';
import { median, medianInterval, round2 } from './lib/stats.ts';
import { wrk } from './lib/wrk.ts';
import type { BenchContext, BenchResult } from './run.ts';

export const title =
  'our edge beside the old one, Caddy reverse_proxy and nginx, 1 KiB answers, keep-alive, one core each';
export const needs = ['nginx', 'wrk'];

const SITES = 10_000;
const CONNECTIONS = 64;
const PROXY_CPU = '0';
const LOAD_CPU = '1';
const UNEXPECTED_SHARE = 0.001;

interface Subject {
  server: Server;
  hosts: readonly string[];
}

export async function run({ quick, log }: BenchContext): Promise<BenchResult> {
  // A multiple of twice the number of subjects: each is then first as often as every other, in both directions.
  const rounds = quick ? 3 : 28;
  const seconds = quick ? 1 : 2;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bench-proxy-'));
  const started: Server[] = [];
  try {
    const subjects = await startSubjects(folder, started, log);
    const rps = new Map<string, number[]>();
    const p99 = new Map<string, number[]>();
    const micros = new Map<string, number[]>();
    for (let round = -1; round < rounds; round++) {
      for (const [name, { server, hosts }] of inTurn(subjects, round)) {
        const before = cpuSeconds(server.pid);
        const result = await wrk(folder, {
          url: `http://127.0.0.1:${server.port}/`,
          seconds: round < 0 ? 1 : seconds,
          connections: CONNECTIONS,
          cpus: LOAD_CPU,
          hosts,
        });
        if (result.unexpected > result.requests * UNEXPECTED_SHARE) {
          throw new Error(`${name}: ${result.unexpected} of ${result.requests} answers were not expected`);
        }
        // Round -1 warms connections and caches.
        if (round < 0) continue;
        push(rps, name, result.rps);
        push(p99, name, result.p99Ms);
        push(micros, name, ((cpuSeconds(server.pid) - before) / result.requests) * 1e6);
        const cost = round2(micros.get(name)!.at(-1)!);
        log(`round ${round + 1} ${name}: ${Math.round(result.rps)} req/s, ${cost} µs, p99 ${round2(result.p99Ms)} ms`);
      }
    }
    return result(rps, p99, micros);
  } finally {
    for (const server of started.reverse()) await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The subjects, another one first in each round: what one leaves behind must not always meet the same next one. */
function inTurn<T>(subjects: ReadonlyMap<string, T>, round: number): [string, T][] {
  const all = [...subjects];
  const first = (round + all.length) % all.length;
  const turned = [...all.slice(first), ...all.slice(0, first)];
  return Math.floor(round / all.length) % 2 === 0 ? turned : turned.reverse();
}

async function startSubjects(
  folder: string,
  started: Server[],
  log: (line: string) => void,
): Promise<Map<string, Subject>> {
  const start = async (...options: Parameters<typeof startServer>) => {
    const server = await startServer(...options);
    started.push(server);
    return server;
  };
  const originPort = await freePort();
  await start(
    'origin',
    LOAD_CPU,
    nginxCommand(
      path.join(folder, 'origin'),
      `  server { listen 127.0.0.1:${originPort} backlog=4096; location / { return 200 "${'x'.repeat(1024)}"; } }`,
    ),
    originPort,
    () => answers(originPort, 'origin'),
  );
  const subjects = new Map<string, Subject>();
  const old = await oldEdge();
  for (const [name, sites, build] of [
    ['old1', 1, old],
    ['edge1', 1, presentEdge],
    // The old one once more: what equal edges differ by in this run.
    ['old1again', 1, old],
    ['edge10k', SITES, presentEdge],
    ['old10k', SITES, old],
  ] as const) {
    const port = await freePort();
    const state = path.join(folder, name);
    writeEdgeState({ folder: state, sites, origin: { address: '127.0.0.1', port: originPort } });
    const hosts = Array.from({ length: sites }, (_, index) => siteHost(index));
    const server = await start(name, PROXY_CPU, edgeCommand(state, port, build), port, () =>
      answers(port, siteHost(0)),
    );
    subjects.set(name, { server, hosts });
  }
  log('building the plain Caddy to compare with');
  const proxy = { handler: 'reverse_proxy', upstreams: [{ dial: `127.0.0.1:${originPort}` }] };
  const caddy = await startPlainCaddy(folder, PROXY_CPU, proxy, (port) => answers(port, siteHost(0)));
  started.push(caddy);
  subjects.set('caddy', { server: caddy, hosts: [siteHost(0)] });
  const nginxPort = await freePort();
  const nginx = `  upstream origin { server 127.0.0.1:${originPort}; keepalive 128; keepalive_requests 10000000; }
  server { listen 127.0.0.1:${nginxPort} backlog=4096; location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Real-IP $remote_addr; } }`;
  subjects.set('nginx', {
    server: await start('nginx', PROXY_CPU, nginxCommand(path.join(folder, 'nginx'), nginx), nginxPort, () =>
      answers(nginxPort, siteHost(0)),
    ),
    hosts: [siteHost(0)],
  });
  return subjects;
}

function push(map: Map<string, number[]>, name: string, value: number): void {
  map.set(name, [...(map.get(name) ?? []), value]);
}

function result(rps: Map<string, number[]>, p99: Map<string, number[]>, micros: Map<string, number[]>): BenchResult {
  const figures: Record<string, unknown> = {};
  for (const name of rps.keys()) {
    const interval = medianInterval(rps.get(name)!);
    figures[name] = {
      rps: Math.round(interval.median),
      rpsInterval: [Math.round(interval.low), Math.round(interval.high)],
      p99Ms: round2(median(p99.get(name)!)),
      cpuMicrosPerRequest: round2(median(micros.get(name)!)),
    };
  }
  const ofRounds = (map: Map<string, number[]>) => ({
    old: map.get('old1')!,
    oldAgain: map.get('old1again')!,
    present: map.get('edge1')!,
  });
  const requests = beside(ofRounds(rps), 'more');
  const time = beside(ofRounds(micros), 'less');
  figures.oldCommit = OLD_COMMIT;
  figures.requestsPerSecond = besideFigures(requests);
  figures.processorTime = besideFigures(time);
  // Ratios are taken round by round: what disturbs a round disturbs both sides of it.
  const ratio = (a: string, b: string) =>
    medianInterval(rps.get(a)!.map((value, round) => value / rps.get(b)![round]!));
  const timeRatio = (a: string, b: string) =>
    medianInterval(micros.get(a)!.map((value, round) => micros.get(b)![round]! / value));
  const toCaddy = ratio('edge10k', 'caddy');
  const toOne = ratio('edge10k', 'edge1');
  const toOneTime = timeRatio('edge10k', 'edge1');
  figures.edgeToCaddy = threeOf(toCaddy);
  figures.edgeToNginx = threeOf(ratio('edge1', 'nginx'));
  figures.edgeToNginxTime = threeOf(timeRatio('edge1', 'nginx'));
  figures.tenThousandToOne = threeOf(toOne);
  figures.tenThousandToOneTime = threeOf(toOneTime);
  figures.oldTenThousandToOne = threeOf(ratio('old10k', 'old1'));
  figures.oldTenThousandToOneTime = threeOf(timeRatio('old10k', 'old1'));
  const judged = [judge('requests per second', requests), judge('processor time per request', time)];
  return {
    figures,
    aims: [
      ...judged.flatMap(({ aims }) => aims),
      { aim: '≥ 1.4 × Caddy (lower end of the interval)', reached: toCaddy.low >= 1.4 },
      { aim: '10,000 sites : one site ≥ 0.95, requests per second (median)', reached: toOne.median >= 0.95 },
      { aim: '10,000 sites : one site ≥ 0.95, processor time (median)', reached: toOneTime.median >= 0.95 },
    ],
    notes: judged.flatMap(({ notes }) => notes),
    programs: { nginx: ['nginx', '-v'], wrk: ['wrk', '-v'], go: ['go', 'version'] },
  };
}
